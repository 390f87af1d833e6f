"""Hosts that may become a domain. Pure."""

import re
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from refract.core.ip_addresses import is_loopback, pack_address
from refract.core.phrases import Phrase
from refract.core.urls import BadUrl, normalize_host, parse_web_url
from refract.domains.errors import DomainIsDefault, InvalidDomainHost
from refract.domains.models import MAX_HOST_LENGTH

_NOT_A_HOST: Final = re.compile(r"[/?#@\\\s]|//")


def get_default_host(public_url: str) -> str:
    """Return the host of the base URL, without its port."""
    return normalize_host(urlsplit(public_url).hostname or "")


def to_other_host(public_url: str, host: str | None) -> str | None:
    """Return the host of a domain as it is stored; None for the default domain.

    It need not exist. An empty or absent host means the default domain too. International names
    are stored in their ASCII form.
    """
    written, base = normalize_host((host or "").strip()), urlsplit(public_url)
    if not written.isascii():
        with suppress(BadUrl):  # then there is no such domain either
            written = parse_web_url(f"https://{written}/").host
    return written if written not in ("", base.hostname, base.netloc) else None


_OWN_ADDRESSES: Final = ("localhost", "127.0.0.1", "[::1]")
"""Hosts by which other programs of this machine request a process, such as Caddy for TLS."""
_VIEW_SUFFIXES: Final = (".qr", ".png", ".rss", ".json", ".md")


def split_address(public_url: str, typed: str) -> tuple[str | None, str]:
    """Return the domain (as `to_other_host`) and the path of a short URL, as people type it.

    `https://sho.rt/name?query`, `sho.rt/name`, `/name` and `name` are understood.
    """
    text = typed.strip()
    _, has_scheme, rest = text.partition("://")
    if has_scheme or text.startswith("//"):
        host, _, path = (rest if has_scheme else text[2:]).partition("/")
        return to_other_host(public_url, host), path.lstrip("/")
    host, slash, path = text.partition("/")
    if slash and "." in host and not host.lower().endswith(_VIEW_SUFFIXES):
        return to_other_host(public_url, host), path.lstrip("/")
    return None, text.lstrip("/")


def parse_domain_host(typed: str, public_url: str) -> str:
    """Return the host of a new domain in ASCII and lower case, without a port.

    Raises `InvalidDomainHost`, or `DomainIsDefault` for the host of the base URL. A port must be
    that of the base URL: all domains share it.
    """
    text = typed.strip()
    if not text:
        raise _build_error(typed, Phrase("it's empty"))
    if _NOT_A_HOST.search(text):
        raise _build_error(typed, Phrase("enter only the host, like sho.rt"))
    try:
        url = parse_web_url(f"https://{text}/")
    except BadUrl as exc:
        raise _build_error(typed, Phrase("it isn't a valid host name")) from exc
    host = normalize_host(url.host)
    if url.port and url.port != str(urlsplit(public_url).port or ""):
        raise _build_error(typed, Phrase("leave out the port"))
    _check_host(typed, host)
    if host == get_default_host(public_url):
        raise DomainIsDefault(host=host)
    return host


def _check_host(typed: str, host: str) -> None:
    if is_loopback(host) and host not in _OWN_ADDRESSES:
        return
    if pack_address(host.strip("[]")) is not None:
        raise _build_error(typed, Phrase("IP addresses can't be domains"))
    labels = host.split(".")
    if len(host) > MAX_HOST_LENGTH or any(not 0 < len(label) <= 63 for label in labels):
        raise _build_error(typed, Phrase("it isn't a valid host name"))
    if len(labels) < 2 or labels[-1].isdigit() or "_" in host:
        raise _build_error(typed, Phrase("it isn't a full host name, like sho.rt"))
    if any(label.startswith("-") or label.endswith("-") for label in labels):
        raise _build_error(typed, Phrase("it isn't a valid host name"))


def _build_error(typed: str, why: str) -> InvalidDomainHost:
    return InvalidDomainHost(host=typed.strip()[:100], why=why)


def show_host(public_url: str, host: str | None) -> str:
    """Return the host of a domain as its short URLs have it, with the port of the base URL."""
    return build_domain_url(public_url, host).partition("://")[2]


def build_domain_url(public_url: str, host: str | None) -> str:
    """Return the beginning of short URLs on a domain, by default the base URL.

    Scheme and port are those of the base URL.
    """
    if not host:
        return public_url
    base = urlsplit(public_url)
    return f"{base.scheme}://{host}{f':{base.port}' if base.port else ''}"
