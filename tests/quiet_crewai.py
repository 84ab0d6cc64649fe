"""CrewAI as tests want it: it calls nobody, and keeps nothing after them. To be used before it is
imported."""

import atexit
import os
import shutil
import tempfile


def settle() -> None:
    """Set the variables that CrewAI reads where it is imported, unless they are set."""
    # Its telemetry would start a thread there, and call home.
    os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("CREWAI_DISABLE_VERSION_CHECK", "true")
    os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
    if "CREWAI_STORAGE_DIR" not in os.environ:
        # Where it keeps the outputs of the last crew, of whatever process and version.
        storage = tempfile.mkdtemp(prefix="dapr-runners-crewai-")
        atexit.register(shutil.rmtree, storage, ignore_errors=True)
        os.environ["CREWAI_STORAGE_DIR"] = storage
