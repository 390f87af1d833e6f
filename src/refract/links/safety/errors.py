"""Why a destination is refused."""

from refract.core.errors import FieldError, Invalid, NotFound


class InvalidUrl(Invalid):
    """{reason}"""

    def __init__(self, *, reason: str, field: str = "destination") -> None:
        super().__init__(reason=reason, errors=[FieldError(field, reason)])


class LinkLoop(Invalid):
    """That's already a Refract link ({host}). Use its destination instead."""


class BlockedDestination(Invalid):
    """Links to {host} aren't allowed here."""


class MaliciousUrl(Invalid):
    """This URL is listed as dangerous ({threat}) and can't be used."""


class InvalidDomain(Invalid):
    """The text "{domain}" isn't a domain. Enter it like example.com, without a path."""


class DomainNotBlocked(NotFound):
    """The domain {domain} isn't blocked."""
