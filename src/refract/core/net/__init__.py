"""The only way to fetch a foreign page: `PageFetcher.fetch`. Input of strangers uses no other.

addresses: which addresses are public · resolver: host name → addresses · connection: one approved
connection, one request, one response · limits: sizes and times · charset: bytes → text · fetcher:
redirects, decoding within limits, and the result · errors: how a fetch can fail · html_head: title
and meta elements of a page · metadata: title, description and image, read in an extraction process
"""

from refract.core.net.addresses import (
    AddressGuard,
    HostResolver,
    IpAddress,
    is_public,
    resolve_by_system,
)
from refract.core.net.connection import FetchLimits
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
