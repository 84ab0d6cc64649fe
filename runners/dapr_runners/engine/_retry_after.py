"""How long a service asks its callers to wait, as far as an exception tells.

``Retry-After`` is seconds or a date (RFC 9110, section 10.2.3). The exceptions of httpx, requests
and the clients of the large model providers carry the response it came with.
"""

import math
import time
from email.utils import parsedate_to_datetime
from typing import Any

_HEADER = "retry-after"


def asked_to_wait(error: BaseException) -> float:
    """Seconds that ``error`` says to wait; 0 where it says nothing."""
    asked = getattr(error, "retry_after", None)
    if asked is None:
        asked = _header(getattr(error, "response", None))
    return max(_seconds(asked), 0.0)


def _header(response: Any) -> Any:
    headers: Any = getattr(response, "headers", None)
    if not hasattr(headers, "items"):
        return None
    # Their mappings mostly ignore case, a plain dict does not.
    return next((value for name, value in headers.items() if str(name).lower() == _HEADER), None)


def _seconds(asked: Any) -> float:
    if isinstance(asked, bool) or not isinstance(asked, (int, float, str)):
        return 0.0
    try:
        seconds = float(asked)
    except ValueError:
        try:
            return parsedate_to_datetime(str(asked)).timestamp() - time.time()
        except ValueError:
            return 0.0
    return seconds if math.isfinite(seconds) else 0.0
