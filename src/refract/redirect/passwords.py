"""Passwords of links: guesses are limited, and a cookie remembers that one was right."""

import hashlib
from datetime import timedelta
from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from refract.core.passwords import is_password
from refract.core.runtime import Runtime
from refract.core.secrets import InvalidSeal
from refract.limits.shared_limits import GuessLimit, WrongGuessLimit
from refract.redirect.errors import WrongLinkPassword
from refract.redirect.resolver import RedirectTarget
from refract.web.cookies import Cookie

PASSWORD_FIELD: Final = "password"  # noqa: S105 - the name of a field
UNLOCKED_SECONDS: Final = 3600
_MAX_BODY_BYTES: Final = 4096
_PURPOSE: Final = "link password"


async def read_guess(receive: Receive) -> str:
    """Return the password in the body of a form; empty if there is none, or far too much."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _MAX_BODY_BYTES or message["type"] != "http.request":
            return ""
        if not message.get("more_body", False):
            break
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10)
    except ValueError:
        return ""
    return str(fields.get(PASSWORD_FIELD, [""])[0])


async def check_guess(rt: Runtime, found: RedirectTarget, network: str, guess: str) -> None:
    """Raise `WrongLinkPassword` or `RateLimited` unless a guess is the password of a link.

    A network has few guesses per link. Wrong ones of all networks together are limited as well.
    """
    wrong = rt.singleton(WrongGuessLimit)
    wrong.check(str(found.id))
    await rt.singleton(GuessLimit).charge(f"{found.id} {network}")
    if not guess or not found.password_hash:
        raise WrongLinkPassword
    if not await is_password(rt, found.password_hash, guess):
        await wrong.charge(str(found.id))
        raise WrongLinkPassword


def remember_unlocked(rt: Runtime, response: Response, found: RedirectTarget) -> None:
    """Let the visitor open the link for a while without its password, until it is changed."""
    until = rt.clock.now() + timedelta(seconds=UNLOCKED_SECONDS)
    sealed = rt.secret.seal(_PURPOSE, _describe(found), until=until)
    _get_cookie(found).set(response, rt, sealed, max_age=UNLOCKED_SECONDS)


def is_unlocked(rt: Runtime, request: Request, found: RedirectTarget) -> bool:
    """Return whether the visitor has given the present password of a link lately."""
    sealed = _get_cookie(found).read(request, rt) or ""
    try:
        return rt.secret.unseal(_PURPOSE, sealed, now=rt.clock.now()) == _describe(found)
    except InvalidSeal:
        return False


def _get_cookie(found: RedirectTarget) -> Cookie:
    return Cookie(f"refract_link_{found.id}")


def _describe(found: RedirectTarget) -> bytes:
    """Return the link and its password's hash, which has a new salt with each password."""
    return hashlib.blake2b(f"{found.id} {found.password_hash}".encode(), digest_size=16).digest()
