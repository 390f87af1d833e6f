"""Errors of short links."""

from refract.core.errors import Forbidden, Invalid, NotFound, RefractError


class ShortLinkNotFound(NotFound):
    """/{name} doesn't exist."""

    def __init__(self, *, name: str, suggestions: list[str] | None = None) -> None:
        self.extra = {"suggestions": suggestions or []}
        super().__init__(name=name)


class PathTooLong(RefractError):
    """The URL is too long. A short link can have at most {limit} characters."""

    status = 414


class PathMismatch(NotFound):
    """{reason} Write it like {usage}."""


class LinkGone(RefractError):
    """/{name} no longer works."""

    status = 410


class LinkExpired(LinkGone):
    """/{name} has expired."""


class LinkDisabled(LinkGone):
    """/{name} is disabled."""


class LinkDeleted(LinkGone):
    """/{name} was deleted."""


class LinkBlocked(LinkGone):
    """The destination of /{name} is blocked."""


class LinkUnavailable(LinkGone):
    """/{name} is unavailable."""


class LinkLimitReached(LinkGone):
    """/{name} has been opened as often as its owner allows."""


class LinkConfirmationRequired(Forbidden):
    """/{name} opens a limited number of times, and not for bots. Open it in a browser."""


class LinkNotStarted(NotFound):
    """/{name} isn't active yet."""


class LinkPasswordRequired(Forbidden):
    """/{name} is protected by a password. Send it as the form field `password` by POST."""


class WrongLinkPassword(Forbidden):
    """That isn't the password of this link."""


class InvalidQrFormat(Invalid):
    """QR codes are available as svg or png. A png has {minimum} to {maximum} pixels."""


class InvalidQrStyle(Invalid):
    """This QR code can't be drawn: {reason}"""


class QrSizeTooSmall(Invalid):
    """This URL doesn't fit a QR code of that size. Ask for at least {minimum} pixels."""


class UrlTooLongForQr(Invalid):
    """This URL is too long for a QR code."""
