"""Statistics as people ask for them. What pages and endpoints call is here; the rest is how it is done."""

from refract.analytics.parts import DIMENSIONS
from refract.analytics.stats.calendar import Granularity
from refract.analytics.stats.results import Breakdown, Counts, Dashboard, LinkClicks, Point, Previous, Share, Stats
from refract.analytics.stats.service import (
    Question,
    campaign_parts,
    dashboard,
    demand_stats,
    link_breakdown,
    link_stats,
    overview,
    overview_breakdown,
)

__all__ = [
    "DIMENSIONS",
    "Breakdown",
    "Counts",
    "Dashboard",
    "Granularity",
    "LinkClicks",
    "Point",
    "Previous",
    "Question",
    "Share",
    "Stats",
    "campaign_parts",
    "dashboard",
    "demand_stats",
    "link_breakdown",
    "link_stats",
    "overview",
    "overview_breakdown",
]
