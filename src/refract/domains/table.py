"""The domains as a process knows them, in memory.

Read with every change that the feed of changes brings, so within a second of it.
"""

from typing import NamedTuple

from refract.core.db.raw import RawReader
from refract.core.runtime import Runtime
from refract.web.hosts import create_accepted_hosts

_ACTIVE_QUERY = (
    "SELECT host, title, root_destination, unknown_destination, gone_destination FROM domains"
    " WHERE state = 'active'"
)


class KnownDomain(NamedTuple):
    """An active domain: its title, and where `/`, unknown names and links that are gone lead."""

    host: str
    title: str | None
    root_destination: str | None
    unknown_destination: str | None
    gone_destination: str | None


class DomainTable:
    """The active domains. Requests for the hosts of others are rejected like any unknown host."""

    def __init__(self, rt: Runtime) -> None:
        self.is_stale = True
        """Set by changes: `load` is due."""
        self._hosts = rt.singleton(create_accepted_hosts)
        self._domains: dict[str, KnownDomain] = {}

    def get(self, host: str) -> KnownDomain | None:
        """Return the active domain with a host; None for the default domain."""
        return self._domains.get(host)

    async def load(self, reader: RawReader) -> None:
        """Read the domains, and accept requests for their hosts."""
        self.is_stale = False  # a change during the query makes it stale again
        try:
            rows = await reader.fetch_rows(_ACTIVE_QUERY)
        except BaseException:
            self.is_stale = True
            raise
        self._domains = {str(row[0]): KnownDomain(*row) for row in rows}
        self._hosts.set_domains(self._domains)
