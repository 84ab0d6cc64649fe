"""What can go wrong in the checkpoint saver alone."""

from dataclasses import dataclass

from dapr_runners.errors import DaprRunnersError


@dataclass(eq=False)
class CheckpointContentionError(DaprRunnersError):
    """The checkpoint index {key!r} was changed by other writers in each of {attempts} attempts, so
    this checkpoint is not recorded and the thread is as the others left it. Run fewer writers on
    one thread, or try again."""

    key: str
    attempts: int


@dataclass(eq=False)
class InvalidKeyPrefixError(DaprRunnersError):
    """DaprSaver cannot use key_prefix={key_prefix!r}: Dapr refuses keys that are empty or contain
    '||'. Nothing was stored. Choose a prefix of letters, digits, '-', '_' and '/'."""

    key_prefix: str


@dataclass(eq=False)
class UnknownPruneStrategyError(DaprRunnersError, ValueError):
    """DaprSaver does not know the pruning strategy {strategy!r}, so nothing was deleted. Use
    'keep_latest' or 'delete'."""

    strategy: str
