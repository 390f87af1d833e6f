"""What a form has to say on the page that follows it: a sentence and the way to take it back, in a signed cookie that lives a moment.

Nothing that anybody can write into an address is ever shown as our own words.
"""

import base64
import binascii
import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from refract.core.runtime import Runtime

COOKIE = "refract_said"
SECONDS = 30
_SIGNATURE = 16
_LONGEST = 3800


def add(
    response: Response, rt: Runtime, message: str, *, undo: str | None = None, kind: str = "done"
) -> None:
    """Show this once, on the next page. `undo` is the address of ours that a POST takes it back at."""
    said = {
        "message": message[:300],
        "kind": kind,
        "undo": undo,
        "until": int(rt.clock.now().timestamp()) + SECONDS,
    }
    payload = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    value = (
        base64.urlsafe_b64encode(rt.secret.sign("flash", payload, size=_SIGNATURE) + payload)
        .rstrip(b"=")
        .decode()
    )
    if (
        len(value) > _LONGEST and undo is not None
    ):  # more than a cookie holds: the words matter more than the way back
        add(response, rt, message, kind=kind)
        return
    response.set_cookie(
        _name(rt),
        value,
        max_age=SECONDS,
        path="/",
        secure=rt.settings.https,
        httponly=True,
        samesite="lax",
    )


def read(request: Request, rt: Runtime) -> dict[str, Any] | None:
    """What the page before had to say; None when there is nothing, when it is not ours or when it is too old."""
    value = request.cookies.get(_name(rt))
    if not value or len(value) > 4096 or not value.isascii():
        return None
    try:
        raw = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        return None
    signature, payload = raw[:_SIGNATURE], raw[_SIGNATURE:]
    if len(signature) < _SIGNATURE or not rt.secret.verify("flash", payload, signature):
        return None
    said: dict[str, Any] = json.loads(payload)
    return said if said["until"] >= rt.clock.now().timestamp() else None


def clear(request: Request, response: Response, rt: Runtime) -> None:
    if _name(rt) in request.cookies:
        response.delete_cookie(
            _name(rt), path="/", secure=rt.settings.https, httponly=True, samesite="lax"
        )


def _name(rt: Runtime) -> str:
    return f"__Host-{COOKIE}" if rt.settings.https else COOKIE
