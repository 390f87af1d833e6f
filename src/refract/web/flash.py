"""What a form has to say on the page that follows it: a sentence and the way to take it back, in a signed cookie that lives a moment.

Nothing that anybody can write into an address is ever shown as our own words.
"""

import json
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.core.secrets import InvalidSeal
from refract.web.cookies import Cookie
from refract.web.i18n import translate

COOKIE = Cookie("refract_said")
SECONDS = 30
_PURPOSE = "flash"
_LONGEST = 3800


def add(
    response: Response, rt: Runtime, message: str, *, undo: str | None = None, kind: str = "done"
) -> None:
    """Show this once, on the next page. `undo` is the address of ours that a POST takes it back at."""
    said = {"message": translate(message)[:300], "kind": kind, "undo": undo}
    payload = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    value = rt.secret.seal(_PURPOSE, payload, until=rt.clock.now() + timedelta(seconds=SECONDS))
    if (
        len(value) > _LONGEST and undo is not None
    ):  # more than a cookie holds: the words matter more than the way back
        add(response, rt, message, kind=kind)
        return
    COOKIE.set(response, rt, value, max_age=SECONDS)


def read(request: Request, rt: Runtime) -> dict[str, Any] | None:
    """What the page before had to say; None when there is nothing, when it is not ours or when it is too old."""
    sealed = COOKIE.read(request, rt) or ""
    try:
        said: dict[str, Any] = json.loads(rt.secret.unseal(_PURPOSE, sealed, now=rt.clock.now()))
    except InvalidSeal:
        return None
    return said


def clear(request: Request, response: Response, rt: Runtime) -> None:
    if COOKIE.read(request, rt) is not None:
        COOKIE.delete(response, rt)
