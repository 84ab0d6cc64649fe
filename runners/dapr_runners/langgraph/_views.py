"""What a call shows of a run that another call started: its chunks, in this call's own shape."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, cast

from dapr_runners.langgraph.errors import StreamModeNotRecordedError

Arguments: TypeAlias = dict[str, Any]


def modes_of(arguments: Arguments, default: str) -> list[str]:
    """The stream modes a call names; ``default`` is its graph's."""
    mode = arguments.get("stream_mode")
    if mode is None:
        return [default]
    return [mode] if isinstance(mode, str) else list(mode)


def with_modes(arguments: Arguments, default: str, more: Iterable[str]) -> Arguments:
    """``arguments`` whose stream has the modes ``more`` too."""
    return {**arguments, "stream_mode": list(dict.fromkeys([*more, *modes_of(arguments, default)]))}


def split(chunk: Any, arguments: Arguments, default: str = "values") -> tuple[str, Any, Any]:
    """``(mode, namespace, data)`` of a chunk, whatever shape the arguments gave it."""
    if arguments.get("version") == "v2":
        return chunk["type"], chunk["ns"], chunk["data"]
    has_mode = isinstance(arguments.get("stream_mode"), list)
    mode = modes_of(arguments, default)[0]
    if arguments.get("subgraphs"):
        return (chunk[1], chunk[0], chunk[2]) if has_mode else (mode, *chunk)
    return (chunk[0], (), chunk[1]) if has_mode else (mode, (), chunk)


def asks(chunk: Any, arguments: Arguments, default: str = "values") -> bool:
    """Whether a chunk tells of an interrupt: many callers leave a stream there, and answer."""
    _, _, data = split(chunk, arguments, default)
    if not isinstance(data, dict):
        return False
    told = cast(dict[str, Any], data)
    if arguments.get("version") == "v2" and chunk.get("interrupts"):
        return True
    return "__interrupt__" in told or bool(told.get("interrupts"))


def view(
    run: str, recorded: Arguments, wanted: Arguments, default: str
) -> Callable[[Any], Iterator[Any]]:
    """Shows a chunk of ``run``, which was started with the arguments ``recorded``, as a call with
    the arguments ``wanted`` would. Raises when that was not recorded."""
    if recorded == wanted:
        return lambda chunk: iter([chunk])
    _require_recorded(run, recorded, wanted, default)
    modes, keys = modes_of(wanted, default), wanted.get("output_keys")

    def show(chunk: Any) -> Iterator[Any]:
        mode, ns, data = split(chunk, recorded, default)
        if mode == "values" and keys is not None:
            data = _only(data, keys)
        if mode not in modes or (ns and not wanted.get("subgraphs")):
            return
        if wanted.get("version") == "v2":
            yield chunk
            return
        head = [ns] if wanted.get("subgraphs") else []
        if isinstance(wanted.get("stream_mode"), list):
            head.append(mode)
        yield (*head, data) if head else data

    return show


def _only(values: Any, keys: Any) -> Any:
    """Those of a state's values that a call names, as far as they were recorded."""
    if not isinstance(values, dict) or isinstance(keys, str):
        return cast(Any, values)
    kept = {"__interrupt__", *keys}
    return {key: value for key, value in cast(Arguments, values).items() if key in kept}


def _require_recorded(run: str, recorded: Arguments, wanted: Arguments, default: str) -> None:
    were, are = modes_of(recorded, default), modes_of(wanted, default)
    missing: tuple[Any, Any] | None = None
    if recorded.get("version", "v1") != wanted.get("version", "v1"):
        missing = (
            f"version={recorded.get('version', 'v1')!r}",
            f"version={wanted.get('version', 'v1')!r}",
        )
    elif not set(are) <= set(were):
        missing = f"stream_mode={were}", f"stream_mode={are}"
    elif wanted.get("subgraphs") and not recorded.get("subgraphs"):
        missing = "subgraphs=False", "subgraphs=True"
    if missing is not None:
        raise StreamModeNotRecordedError(run_id=run, recorded=missing[0], wanted=missing[1])
