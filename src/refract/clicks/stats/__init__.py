"""Click statistics: the functions and results that pages and endpoints use."""

from refract.clicks.rollups.breakdowns import DIMENSIONS
from refract.clicks.stats.calendar import Granularity, StatsQuery
from refract.clicks.stats.results import (
    Breakdown,
    ClickCounts,
    LinkClicks,
    LinkDashboard,
    PreviousPeriod,
    SeriesPoint,
    StatsResult,
    ValueShare,
)
from refract.clicks.stats.service import (
    get_breakdown,
    get_campaign_breakdown,
    get_dashboard,
    get_link_breakdown,
    get_link_stats,
    get_overview,
    get_overview_breakdown,
    get_scope_dashboard,
    get_stats,
    require_stats_access,
)

__all__ = [
    "DIMENSIONS",
    "Breakdown",
    "ClickCounts",
    "Granularity",
    "LinkClicks",
    "LinkDashboard",
    "PreviousPeriod",
    "SeriesPoint",
    "StatsQuery",
    "StatsResult",
    "ValueShare",
    "get_breakdown",
    "get_campaign_breakdown",
    "get_dashboard",
    "get_link_breakdown",
    "get_link_stats",
    "get_overview",
    "get_overview_breakdown",
    "get_scope_dashboard",
    "get_stats",
    "require_stats_access",
]
