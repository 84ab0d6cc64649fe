"""The ``dapr-runners`` command."""

from dapr_runners.cli._app import main

__all__ = ["main"]
