"""Why a destination is refused."""

from refract.core.errors import FieldError, Invalid, NotFound


class InvalidUrl(Invalid):
    """{reason}"""

    def __init__(self, *, reason: str, field: str = "destination") -> None:
        super().__init__(reason=reason, errors=[FieldError(field, reason)])


class LinkLoop(Invalid):
    """This address is our own ({host}): a short link to a short link can lead in a circle. Use the address it leads to."""


class BlockedDestination(Invalid):
    """Links to {host} are not allowed here."""


class MaliciousUrl(Invalid):
    """This address is listed as dangerous ({threat}), so no link may lead to it."""


class InvalidDomain(Invalid):
    """The text "{domain}" is not a domain. Write it like example.com, without a path."""


class DomainNotBlocked(NotFound):
    """The domain {domain} is not blocked."""
