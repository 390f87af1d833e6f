"""What a page of analytics asks for, and the addresses that ask for something else."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from sqlalchemy import func, select

from refract.clicks.stats.filters import ClickFilter
from refract.clicks.stats.period import AnalyticsPeriod, parse_period
from refract.clicks.stats.scope import LinkScope, StatsScope
from refract.core.ids import get_link_time
from refract.core.runtime import Runtime

_KEPT_PARAMETERS: Final = ("range", "from", "to", "by", "compare", "owner", "team", "tag", "link")


@dataclass(frozen=True, slots=True)
class AnalyticsRequest:
    """What a page asks for: a scope, a filter, a period, and the page's address."""

    scope: StatsScope
    chosen: ClickFilter
    zone: str
    now: datetime
    path: str
    given: Mapping[str, str]
    scope_labels: Mapping[str, str]
    """Names of the owner, the team, the tag and the link that the query string asks for."""

    def build_url(self, path: str | None = None, **changes: str | None) -> str:
        """Return the address of this page with other parameters; None removes one."""
        current = {name: self.given[name] for name in _KEPT_PARAMETERS if self.given.get(name)}
        current |= dict(self.chosen.iter_parameters())
        merged = {**current, **changes}
        query = urlencode({name: value for name, value in merged.items() if value})
        path = path or self.path
        return f"{path}?{query}" if query else path

    def build_part_url(self, path: str) -> str:
        """Return the address of a part of this page: with the link, even if it is in our path."""
        link = str(self.scope.link_id) if isinstance(self.scope, LinkScope) else None
        return self.build_url(path, **({"link": link} if link else {}))

    async def parse_period(self, rt: Runtime) -> AnalyticsPeriod:
        return parse_period(self.given, self.zone, self.now, await self._find_oldest(rt))

    async def _find_oldest(self, rt: Runtime) -> datetime:
        """Return when the first link of the scope was created; only for all time."""
        if isinstance(self.scope, LinkScope):
            return get_link_time(self.scope.link_id)
        if self.given.get("range") != "all":
            return self.now
        links = self.scope.select_links().subquery()
        async with rt.db.read() as session:
            oldest = await session.scalar(select(func.min(links.c[0])))
        return get_link_time(oldest) if oldest else self.now
