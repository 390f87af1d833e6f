"""URLs as browsers read them: one parser (WHATWG, by ada) for checks, comparison and `Location`."""

import re
from dataclasses import dataclass

from ada_url import URL

from refract.core.phrases import Phrase

MAX_URL_LENGTH = 2048
MAX_HOST_LENGTH = 254
"""The limit of DNS, and a trailing dot."""

_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_BARE = re.compile(r"[^/?#@:]*\.[^/?#@:]*(:\d{1,5})?(?=[/?#]|$)")
_TRACKERS = re.compile(r"^(utm_[a-z_]+|gclid|fbclid)$", re.IGNORECASE)
_HREF = re.compile(
    r"(https?)://(?:([^/?#@]*)@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d+))?([^?#]*)(\?[^#]*)?(#.*)?",
    re.DOTALL,
)
_HOST = re.compile(r"^[a-z0-9_.-]+$|^\[[0-9a-f:.]+\]$")


class BadUrl(ValueError):
    """The reason why a text is not an acceptable URL. The message is for users."""


@dataclass(frozen=True, slots=True)
class WebUrl:
    """A parsed http or https URL."""

    href: str
    scheme: str
    host: str
    port: str
    path: str
    query: str
    fragment: str

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}{':' + self.port if self.port else ''}"


def complete_url(text: str) -> str:
    """Return a URL with `https://` before a bare host: `example.com/page`, `example.com:8080`."""
    typed = text.strip(" ")
    return f"https://{typed}" if _BARE.match(typed) else text


def parse_web_url(text: str, *, limit: int = MAX_URL_LENGTH) -> WebUrl:
    """Parse a URL as a browser would; raise `BadUrl` for one that no visitor should be sent to."""
    typed = text.strip(" ")
    _check_shape(typed, limit)
    try:
        url = URL(typed)
    except ValueError as exc:
        raise BadUrl(_explain_unparsable(typed)) from exc
    href = url.href  # the only attribute that is read: each costs as much as parsing
    parts = _HREF.match(href)
    if parts is None:
        raise BadUrl(
            Phrase(
                "Only http:// and https:// URLs are supported, not {scheme}:.",
                scheme=href.split(":", 1)[0],
            )
        )
    scheme, user, host, port, path, query, fragment = parts.groups(default="")
    if user or "@" in _extract_authority(typed):
        raise BadUrl(Phrase("Remove the user name and password from the URL."))
    if not re.match(r"^https?://[^/\\?#]", typed, re.IGNORECASE):
        raise BadUrl(Phrase("Write the URL with two slashes, like https://example.com/."))
    if not _is_valid_host(host):
        raise BadUrl(Phrase("The URL doesn't have a valid host name."))
    if len(href) > limit * 3:
        raise BadUrl(
            Phrase("The encoded URL can have at most {limit} characters.", limit=limit * 3)
        )
    query, fragment = query if query != "?" else "", fragment if fragment != "#" else ""
    return WebUrl(href, scheme, host, port, path, query, fragment)


def _is_valid_host(host: str) -> bool:
    return (
        0 < len(host) <= MAX_HOST_LENGTH
        and _HOST.match(host) is not None
        and not host.startswith(".")
        and ".." not in host
        and _has_canonical_labels(host)
    )


def _check_shape(typed: str, limit: int) -> None:
    if not typed:
        raise BadUrl(Phrase("Enter a URL, like https://example.com/."))
    if len(typed) > limit:
        raise BadUrl(
            Phrase(
                "The URL has {length} characters. The limit is {limit}.",
                length=len(typed),
                limit=limit,
            )
        )
    if _CONTROL.search(typed):
        raise BadUrl(Phrase("The URL contains control or invisible characters."))
    if "\\" in typed.split("?", maxsplit=1)[0].split("#", maxsplit=1)[0]:
        raise BadUrl(Phrase("The URL contains a backslash. Use / instead."))


def _has_canonical_labels(host: str) -> bool:
    """Return whether every encoded label (`xn--…`) is the canonical encoding of its characters.

    Browsers reject any other, ada accepts some.
    """
    if "xn--" not in host:
        return True
    try:
        shown = ".".join(
            label[4:].encode().decode("punycode") if label.startswith("xn--") else label
            for label in host.split(".")
        )
        return bool(URL(f"http://{shown}/").hostname == host)
    except ValueError:
        return False


def _extract_authority(typed: str) -> str:
    return re.split(r"[/\\?#]", typed.split("://", 1)[-1], maxsplit=1)[0]


def _explain_unparsable(typed: str) -> str:
    if not _SCHEME.match(typed):
        return Phrase("The URL must start with http:// or https://.")
    return Phrase("That doesn't look like a valid URL.")


def normalize_host(host: str) -> str:
    """Return a host for comparison: lower case, without a trailing dot."""
    return host.rstrip(".").lower()


def list_parent_domains(host: str) -> list[str]:
    """Return the host and every domain above it, most specific first.

    `a.b.example` → `a.b.example`, `b.example`, `example`.
    """
    labels = normalize_host(host).split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]


def normalize_url(url: WebUrl) -> str:
    """Return the form in which two URLs count as the same page.

    Scheme and `www.` stay; default port (already gone), fragment, trackers and a trailing slash are
    removed; the query is sorted.
    """
    pairs = [
        pair
        for pair in url.query.removeprefix("?").split("&")
        if pair and not _TRACKERS.match(pair.split("=", 1)[0])
    ]
    query = "&".join(sorted(pairs))
    path = url.path.rstrip("/")
    return f"{url.origin}{path}{'?' + query if query else ''}"
