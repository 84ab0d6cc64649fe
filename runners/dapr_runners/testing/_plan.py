"""What the agent in a program is told; see ``_agent``."""

PLAN = "DAPR_RUNNERS_CRASH_TEST"
"""Variable that names the plan's file."""
