"""What a Kutt client asks for that does not exist here."""

from refract.core.errors import Forbidden, Invalid


class KuttDomainNotAllowed(Invalid):
    """You can't use this domain."""


class InvalidKuttExpiry(Invalid):
    """Expire format is invalid. Valid examples: 1m, 8h, 42 days. The minimum is one minute."""


class KuttDomainsNotSupported(Forbidden):
    """Domains can't be changed here."""
