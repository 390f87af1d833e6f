"""The one way to fetch a foreign page: `Fetcher.fetch`. Nothing that a stranger names is ever reached by another way.

addresses: which addresses are public · names: host name → addresses · wire: one approved connection, one request, one answer
body: decoding within limits · charset: bytes → text · fetch: redirects, time and the result · errors: how a fetch can end
head: title and meta elements of a page · metadata: what a page says of itself, read in an extraction process
"""

from refract.core.net.addresses import Address, Guard, is_public
from refract.core.net.errors import (
    BadAnswer,
    BadStatus,
    FetchError,
    NotAPage,
    RefusedAddress,
    TimedOut,
    TooLarge,
    TooManyRedirects,
    Unreachable,
)
from refract.core.net.fetch import ANYTHING, PAGES, Fetcher, Page
from refract.core.net.limits import Limits
from refract.core.net.names import Resolver, resolve_by_system

__all__ = [
    "ANYTHING",
    "PAGES",
    "Address",
    "BadAnswer",
    "BadStatus",
    "FetchError",
    "Fetcher",
    "Guard",
    "Limits",
    "NotAPage",
    "Page",
    "RefusedAddress",
    "Resolver",
    "TimedOut",
    "TooLarge",
    "TooManyRedirects",
    "Unreachable",
    "is_public",
    "resolve_by_system",
]
