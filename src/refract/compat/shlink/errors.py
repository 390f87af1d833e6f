"""What a Shlink client asks for that does not exist here."""

from refract.core.errors import Forbidden, Invalid, NotFound, RefractError


class UnsupportedShortUrlField(Invalid):
    """{why}"""

    def __init__(self, field: str, why: str) -> None:
        self.field = field
        super().__init__(why=why)


class ShlinkTagNotFound(NotFound):
    """There's no tag "{tag}"."""


class ShlinkDomainNotFound(NotFound):
    """The domain "{authority}" doesn't exist."""


class DomainRedirectsNotSupported(Forbidden):
    """Redirects of domains can't be set here."""


class TagChangeNotAllowed(Forbidden):
    """Only administrators with a key that has the scope "admin" may change shared tags."""


class MercureNotConfigured(RefractError):
    """This server isn't integrated with a Mercure hub."""

    status = 501
