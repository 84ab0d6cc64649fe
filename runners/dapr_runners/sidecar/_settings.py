"""How to run a sidecar: the values behind its options, and daprd's notation for them."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from dapr_runners.sidecar._components import DEFAULT, Components

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}

DEFAULT_BODY_SIZE = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """``limits`` bounds what runs at once, by ``workflow``, ``activity`` or ``activity/NAME``."""

    database: Path
    app_id: str = "runner"
    host: str = "127.0.0.1"
    grpc_port: int = 0
    http_port: int = 0
    api_token: str | None = None
    max_body_size: int = DEFAULT_BODY_SIZE
    components: Components = DEFAULT
    limits: dict[str, int] = field(default_factory=dict[str, int])


def parse_size(text: str) -> int:
    """Bytes from a Kubernetes quantity such as ``4194304``, ``4Mi`` or ``16M``."""
    match = re.fullmatch(r"(-?\d+)\s*([kmg]i?)?b?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 4Mi or 4194304")
    return int(match[1]) * _UNITS[match[2] or ""]
