"""The one way to fetch a foreign page: `Fetcher.fetch`. Nothing that a stranger names is ever reached by another way.

addresses: which addresses are public · names: host name → addresses · wire: one approved connection, one request, one answer
body: decoding within limits · charset: bytes → text · fetch: redirects, time and the result · errors: how a fetch can end
head: title and meta elements of a page · metadata: what a page says of itself, read in an extraction process
"""

from refract.core.net.addresses import AddressGuard, IpAddress, is_public
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
from refract.core.net.fetcher import ANY_TYPE, HTML_TYPES, FetchedPage, PageFetcher
from refract.core.net.limits import FetchLimits
from refract.core.net.resolver import HostResolver, resolve_by_system

__all__ = [
    "ANY_TYPE",
    "HTML_TYPES",
    "AddressGuard",
    "BadAnswer",
    "BadStatus",
    "FetchError",
    "FetchLimits",
    "FetchedPage",
    "HostResolver",
    "IpAddress",
    "NotAPage",
    "PageFetcher",
    "RefusedAddress",
    "TimedOut",
    "TooLarge",
    "TooManyRedirects",
    "Unreachable",
    "is_public",
    "resolve_by_system",
]
