"""Crews, flows and agents that use every feature of CrewAI, run plain and on the runner.

A case is a factory and a script that kicks it off. What comes out of it (texts, pydantic and JSON
outputs, tokens, the outputs of the tasks), which requests its models got, and which tools ran with
what, must be the same with CrewAI's own ``kickoff()`` and on a runner of that factory.
"""

import warnings

# CrewAI's own, of its fields and of what it uses: as pyproject.toml has them for pytest.
warnings.filterwarnings("ignore", "Cannot set an attribute on 'crewai.rag'", ImportWarning)
warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"crewai\.")
warnings.filterwarnings("ignore", "function callbacks cannot be serialized", UserWarning)
warnings.filterwarnings("ignore", "create_scalar_index is deprecated")
