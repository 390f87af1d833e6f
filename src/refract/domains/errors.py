"""Errors of domains."""

from refract.core.errors import Conflict, FieldError, Forbidden, Invalid, NotFound


class DomainNotFound(NotFound):
    """There's no domain "{host}" here."""


class DomainExists(Conflict):
    """The domain "{host}" already exists."""


class InvalidDomainHost(Invalid):
    """The host "{host}" can't be a domain: {why}."""


class DomainNotAllowed(Forbidden):
    """You can't create anything on {host}. Choose another domain, or ask an administrator."""


class DomainDisabled(Conflict):
    """The domain {host} is disabled. Enable it first, or choose another domain."""


class DomainNotEmpty(Conflict):
    """{host} still has links or lists ({count}). Delete them first, also from the trash."""


class DomainIsDefault(Conflict):
    """{host} is the default domain, which REFRACT_BASE_URL sets. It can't be changed here."""


class DomainTeamRequired(Invalid):
    """Choose the team that may create links on this domain."""


class InvalidFallback(Invalid):
    """{reason}"""

    def __init__(self, *, field: str, reason: str) -> None:
        super().__init__(reason=reason, errors=[FieldError(field, reason)])
