"""How code inside a step ends it without a result. No Exceptions: frameworks and users catch those,
and what is meant here is for the engine alone."""

from dapr_runners.engine._work import Json


class Halt(BaseException):
    """Ends a step that is not to be recorded."""


class Parks(Halt):
    """The step waits for somebody's decision, and holds no worker. ``about`` (plain data) says on
    what."""

    def __init__(self, about: Json) -> None:
        super().__init__(about)
        self.about = about


class Breaks(Halt):
    """The run ends with ``error``, whatever its framework and its user's code would make of that:
    they might do again what must not be done again."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Abandons(Halt):
    """This attempt at the step is over with ``error``, which is none of the step's own: it is tried
    again. With ``is_stale`` another attempt has taken its place: this one writes nothing more."""

    def __init__(self, error: Exception, *, is_stale: bool = False) -> None:
        super().__init__(error)
        self.error = error
        self.is_stale = is_stale
