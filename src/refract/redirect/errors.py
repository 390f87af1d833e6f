"""Why a short link leads nowhere."""

from refract.core.errors import Invalid, NotFound, RefractError


class NoSuchLink(NotFound):
    """Nothing lives at /{name}."""

    def __init__(self, *, name: str, suggestions: list[str] | None = None) -> None:
        self.extra = {"suggestions": suggestions or []}
        super().__init__(name=name)


class PathTooLong(RefractError):
    """The address is too long: a short link takes at most {most} characters."""

    status = 414


class PathDoesNotFit(NotFound):
    """{reason} Write it like {usage}."""


class LinkGone(RefractError):
    """The link /{name} leads nowhere any more."""

    status = 410


class LinkExpired(LinkGone):
    """The link /{name} has expired."""


class LinkDisabled(LinkGone):
    """The link /{name} is switched off."""


class LinkDeleted(LinkGone):
    """The link /{name} has been deleted."""


class LinkBlocked(LinkGone):
    """The link /{name} led to a place that is blocked here."""


class LinkUnavailable(LinkGone):
    """The link /{name} is not available."""


class BadQrFormat(Invalid):
    """A QR code comes as svg or png; a png has a size from {least} to {most} pixels."""


class QrTooDense(Invalid):
    """This address is too long for a QR code of that size: ask for at least {least} pixels."""


class QrTooLong(Invalid):
    """This address is too long for a QR code."""
