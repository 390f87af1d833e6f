"""A file of domains that links may not lead to: one per line, or a hosts file."""

import asyncio
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from refract.core.errors import ConfigurationError
from refract.core.urls import BadUrl, list_parent_domains, normalize_host, parse_web_url

_PLAIN_DOMAIN = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOCAL_NAMES = frozenset(
    {
        "localhost",
        "localhost.localdomain",
        "local",
        "broadcasthost",
        "0.0.0.0",  # noqa: S104 - a word in a file
    }
)
"""Entries for the machine itself, in every hosts file. They must not block an intranet."""

_MAX_LOGGED_LINES = 5


@dataclass(frozen=True, slots=True)
class DomainSet:
    """Domains, and the numbers of invalid lines."""

    names: frozenset[str] = frozenset()
    invalid_lines: list[int] = field(default_factory=list)

    def match(self, host: str) -> str | None:
        """Return the domain that covers this host: the host itself or a parent.

        None if there is none.
        """
        return next((domain for domain in list_parent_domains(host) if domain in self.names), None)


class BlockedDomainSnapshot:
    """All domains that an administrator has blocked, as of an epoch."""

    def __init__(self, epoch: int = 0, domains: Iterable[str] = ()) -> None:
        self._epoch = epoch
        self._domains = DomainSet(frozenset(domains))

    def is_current(self, epoch: int) -> bool:
        return epoch == self._epoch

    def match(self, host: str) -> str | None:
        return self._domains.match(host)


def canonicalise_domain(text: str) -> str | None:
    """Return a domain or IP address in lower-case ASCII, without a trailing dot or leading `*.`."""
    bare = text.strip().removeprefix("*.").removeprefix(".").rstrip(".")
    if _PLAIN_DOMAIN.fullmatch(bare) and not _NUMBER.fullmatch(
        bare.rpartition(".")[2]
    ):  # the fast path for nearly all lines
        return bare if len(bare) <= 253 else None
    if ":" in bare and not bare.startswith("["):
        bare = f"[{bare}]"
    if not bare or re.search(r"[/?#@\\\s%]|:\d+$", bare):
        return None
    try:
        host = normalize_host(parse_web_url(f"http://{bare}/").host)
    except BadUrl:
        return None
    return host if len(host) <= 253 else None


def parse_domains(lines: Iterable[str]) -> DomainSet:
    names: set[str] = set()
    broken: list[int] = []
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        hosts = (
            words[1:]
            if len(words) > 1 and _is_address(words[0])
            else words
            if len(words) == 1
            else []
        )
        domains = [
            canonicalise_domain(host)
            for host in hosts
            if len(words) == 1 or not _is_local_name(host)
        ]
        if not hosts or None in domains:
            broken.append(number)
        names.update(domain for domain in domains if domain)
    return DomainSet(frozenset(names), broken)


def _is_local_name(host: str) -> bool:
    return host.lower() in _LOCAL_NAMES or host.lower().startswith("ip6-")


def _is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word.partition("%")[0])
    except ValueError:
        return False
    return True


class BlocklistFile:
    """The file as it was last read, reloaded when it changes. Empty if none is configured."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file_signature: tuple[int, int, int] | None = None
        self._domains = DomainSet()
        self._log = structlog.get_logger("refract.blocklist")
        if path is None:
            return
        try:
            self._file_signature = _read_signature(path)
            self._set_domains(_read_file(path))
        except OSError as exc:
            raise ConfigurationError(
                problem=(
                    f"The block list {path} cannot be read ({exc.strerror or 'it is not a file'})."
                ),
                remedy="Put it there, or take REFRACT_BLOCKLIST_PATH away.",
            ) from exc

    def __len__(self) -> int:
        return len(self._domains.names)

    async def load_domains(self) -> DomainSet:
        """Return the domains, reloaded if the file has changed.

        An unreadable file keeps the last list.
        """
        if self._path is None:
            return self._domains
        try:
            now = _read_signature(self._path)
            if now != self._file_signature:
                domains = await asyncio.to_thread(_read_file, self._path)
                self._file_signature = now
                self._set_domains(domains)
        except OSError as exc:
            if self._file_signature is not None:
                self._log.warning(
                    "the block list cannot be read; the last one holds",
                    path=str(self._path),
                    reason=exc.strerror,
                )
            self._file_signature = None
        return self._domains

    def _set_domains(self, domains: DomainSet) -> None:
        self._domains = domains
        if domains.invalid_lines:
            self._log.warning(
                "the block list has lines that are no domains",
                path=str(self._path),
                count=len(domains.invalid_lines),
                lines=domains.invalid_lines[:_MAX_LOGGED_LINES],
            )


def _read_signature(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read_file(path: Path) -> DomainSet:
    with path.open(encoding="utf-8", errors="replace") as lines:
        return parse_domains(lines)
