"""What can go wrong with the embedded sidecar."""

from dataclasses import dataclass

from dapr_runners.errors import DaprRunnersError


@dataclass(eq=False)
class IncompatibleSdkError(DaprRunnersError):
    """The embedded sidecar cannot speak to the installed dapr package {version}: {reason}. Nothing
    was started. Install a version it knows (dapr 1.19, or 1.18 with dapr-ext-workflow), or use a
    real sidecar with `dapr run`."""

    version: str
    reason: str


@dataclass(eq=False)
class SidecarStartError(DaprRunnersError):
    """The embedded sidecar on {database} did not start, so nothing can run. {detail}"""

    database: str
    detail: str


@dataclass(eq=False)
class PortTakenError(DaprRunnersError):
    """The {kind} port {port} cannot be had: {reason}. Most likely another program has it, such as
    a sidecar that still runs. Stop that one, or give this sidecar another port: {option} 0 takes a
    free one."""

    kind: str
    port: int
    option: str
    reason: str


@dataclass(eq=False)
class DatabaseUnwritableError(DaprRunnersError):
    """The database {database} cannot be written: {reason}. Give this user the right to write the
    file and its directory, or put it elsewhere with --state-dir (of `dapr-runners run`) or
    --database."""

    database: str
    reason: str


@dataclass(eq=False)
class DatabaseInUseError(DaprRunnersError):
    """The database {database} is held by another embedded sidecar, so this one cannot start: two
    of them would overwrite each other. Stop the other one, or choose another database."""

    database: str


@dataclass(eq=False)
class ForeignDatabaseError(DaprRunnersError):
    """The file {database} is not a database of this embedded sidecar ({reason}), so it was left
    alone. Choose another path, or remove the file if its runs are no longer needed."""

    database: str
    reason: str


@dataclass(eq=False)
class ResourceFileError(DaprRunnersError):
    """The resource file {path} cannot be used: {reason}. The sidecar did not start. Correct the
    file, or point --resources-path somewhere else."""

    path: str
    reason: str
