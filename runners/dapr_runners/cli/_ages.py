"""Ages, as people give them."""

import re

import typer

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def age(text: str | None, option: str) -> float | None:
    """Seconds that ``text``, such as ``90s``, ``2h`` or ``3d``, is; None for none."""
    if text is None:
        return None
    found = _AGE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(
            "an age is a number and one of s, m, h, d and w, such as 2h or 30d", param_hint=option
        )
    return float(found[1]) * _UNITS[found[2]]
