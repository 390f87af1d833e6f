"""One-time messages on the next page, with an optional undo, in a signed short-lived cookie.

The signature ensures that nothing from a URL is ever shown as a message of ours.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from refract.core.runtime import Runtime
from refract.core.secrets import InvalidSeal
from refract.web.cookies import Cookie
from refract.web.i18n import ngettext, translate

COOKIE = Cookie("refract_said")
SECONDS = 30
_PURPOSE = "flash"
_MAX_LENGTH = 3800


def add(
    response: Response, rt: Runtime, message: str, *, undo: str | None = None, kind: str = "done"
) -> None:
    """Show a message once, on the next page. A POST to the path `undo` undoes the change."""
    said = {"message": translate(message)[:300], "kind": kind, "undo": undo}
    payload = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    value = rt.secret.seal(_PURPOSE, payload, until=rt.clock.now() + timedelta(seconds=SECONDS))
    if (
        len(value) > _MAX_LENGTH and undo is not None
    ):  # too long for a cookie: the message matters more than the undo
        add(response, rt, message, kind=kind)
        return
    COOKIE.set(response, rt, value, max_age=SECONDS)


def add_bulk_result(
    response: Response,
    rt: Runtime,
    message: str | None,
    failures: Sequence[str],
    *,
    undo: str | None,
) -> None:
    """Show what an action on several things did, and why it failed for some.

    `message` is None if it failed for all of them.
    """
    if message is None:
        add(response, rt, failures[0], kind="wrong")
        return
    if failures:
        failed = ngettext(
            "{n} failed: {reason}", "{n} failed: {reason}", len(failures), reason=failures[0]
        )
        message = f"{message} · {failed}"
    add(response, rt, message, undo=undo)


def read(request: Request, rt: Runtime) -> dict[str, Any] | None:
    """Return the message of the previous page; None without one, or if it is forged or expired."""
    sealed = COOKIE.read(request, rt) or ""
    try:
        said: dict[str, Any] = json.loads(rt.secret.unseal(_PURPOSE, sealed, now=rt.clock.now()))
    except InvalidSeal:
        return None
    return said


def clear(request: Request, response: Response, rt: Runtime) -> None:
    if COOKIE.read(request, rt) is not None:
        COOKIE.delete(response, rt)
