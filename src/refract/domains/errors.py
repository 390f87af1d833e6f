"""Errors of domains."""

from refract.core.errors import Conflict, Forbidden, Invalid, NotFound


class DomainNotFound(NotFound):
    """There's no domain "{host}" here."""


class DomainExists(Conflict):
    """The domain "{host}" already exists."""


class InvalidDomain(Invalid):
    """The host "{host}" can't be a domain: {why}."""


class DomainNotAllowed(Forbidden):
    """You can't create anything on {host}. Choose another domain, or ask an administrator."""


class DomainDisabled(Conflict):
    """The domain {host} is disabled. Enable it first, or choose another domain."""


class DomainNotEmpty(Conflict):
    """{host} still has links or lists ({count}). Delete them first, also from the trash."""
