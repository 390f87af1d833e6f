"""Provocations of statistics, live streams and exports."""

from refract.identity.concurrency_limits import UserConcurrencyLimits
from refract.web.networks import open_share
from tests.errors.provoking import provokes, sends
from tests.errors.site import PEER, Asking, many

_STATS = "/links/{link_id}/stats"
_RANGES = (
    f"GET {_STATS}",
    f"GET {_STATS}/export",
    f"GET {_STATS}/{{dimension}}",
    "GET /stats",
    "GET /stats/{dimension}",
)

sends("INVALID_RANGE", *_RANGES, query={"from": "2026-06-02", "to": "2026-06-01"})
sends("UNKNOWN_TIME_ZONE", *_RANGES, query={"tz": "Mars/Olympus"})
sends(
    "TOO_MANY_POINTS",
    f"GET {_STATS}",
    "GET /stats",
    query={"granularity": "day", "from": "1990-01-01"},
)
sends("ADMIN_REQUIRED", "GET /stats", "GET /stats/{dimension}", query={"owner": "all"})


@provokes("FILTER_REQUIRED", "GET /stats", "GET /stats/{dimension}")
async def everyones_clicks_without_a_filter(asking: Asking) -> None:
    await asking.ask(headers=asking.site.keys["admin"], query={"owner": "all"})


@provokes("STREAM_LIMIT_REACHED", f"GET {_STATS}/live")
async def streams_of_one_person(asking: Asking) -> None:
    limit = asking.rt.settings.streams_per_person or 0
    with many(
        asking.rt.singleton(UserConcurrencyLimits).count_stream(asking.world.owner.id)
        for _ in range(limit)
    ):
        await asking.ask()


@provokes("TOO_MANY_NETWORK_STREAMS", f"GET {_STATS}/live")
async def streams_of_one_network(asking: Asking) -> None:
    limit = asking.rt.settings.streams_per_network or 0
    opened = [
        open_share({"client": (PEER, 1), "headers": [], "state": {}}, asking.rt)
        for _ in range(limit)
    ]
    with many(iter(opened)):
        for share in opened:
            share.become_stream()
        await asking.ask()
