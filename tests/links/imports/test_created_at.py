"""The dates that links bring from elsewhere: shown, sorted, filtered and exported like ours."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.imports import LinkImportOutcome
from refract.links.models import Link, LinkTombstone
from refract.links.queries.browse import LinkFilter, load_links_page
from refract.names.service import draw_past_ids
from tests import make
from tests.links.imports.test_importer import bring, exported, forget_links, outcomes

YOURLS = """keyword,url,title,timestamp,ip,clicks
late,https://example.com/late,,2026-01-05 10:00:00,,0
old,https://example.com/old,,2009-03-01 12:00:00,,0
none,https://example.com/none,,0000-00-00 00:00:00,,0
soon,https://example.com/soon,,2999-01-01 00:00:00,,0
bad,https://example.com/bad,,yesterday,,0
middle,https://example.com/middle,,2024-01-20 00:00:00.5,,0
"""


async def newest(rt: Runtime, user: User, **given: datetime) -> list[str]:
    async with rt.db.read() as session:
        filters = LinkFilter(**given)  # type: ignore[arg-type]
        page = await load_links_page(
            session,
            CursorCodec(rt.secret),
            make.who(user),
            filters,
            rt.clock.now(),
            limit=50,
            cursor=None,
        )
    return [link.destination.rpartition("/")[2] for link in page.items]


async def test_links_keep_their_dates_and_are_listed_by_them(rt: Runtime, ada: User) -> None:
    async with rt.db.write() as session:
        await make.link(session, rt, ada, "https://example.com/mine")
    results = await bring(rt, ada, YOURLS)

    assert outcomes(results) == [LinkImportOutcome.CREATED] * 6
    assert [list(result.remarks) for result in results if result.remarks] == [
        ["its creation date can't be read"]
    ]
    async with rt.db.read() as session:
        links = await session.scalars(select(Link))
        made = {link.destination.rpartition("/")[2]: link for link in links}
    assert made["old"].created_at == datetime(2009, 3, 1, 12, tzinfo=UTC)
    assert made["middle"].created_at == datetime(2024, 1, 20, 0, 0, 0, 500_000, tzinfo=UTC)
    assert made["none"].created_at == made["mine"].created_at == rt.clock.now()
    assert made["soon"].created_at == rt.clock.now()
    assert (await newest(rt, ada))[-3:] == ["late", "middle", "old"]


@pytest.mark.parametrize(
    ("begin", "end", "found"),
    [
        (datetime(2009, 1, 1, tzinfo=UTC), datetime(2010, 1, 1, tzinfo=UTC), ["old"]),
        (datetime(2010, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC), ["middle"]),
        (datetime(2024, 2, 1, tzinfo=UTC), datetime(2026, 1, 5, 10, tzinfo=UTC), []),
        (datetime(1960, 1, 1, tzinfo=UTC), datetime(2009, 1, 1, tzinfo=UTC), []),
    ],
)
async def test_ranges_of_dates_find_imported_links(
    rt: Runtime, ada: User, begin: datetime, end: datetime, found: list[str]
) -> None:
    await bring(rt, ada, YOURLS)

    assert await newest(rt, ada, created_after=begin, created_before=end) == found


async def test_dates_survive_an_export(rt: Runtime, ada: User, bob: User) -> None:
    await bring(rt, ada, YOURLS)
    before = await newest(rt, ada)
    file = await exported(rt)
    await forget_links(rt)

    await bring(rt, bob, file, keep_ids=False)

    assert (await newest(rt, bob))[-3:] == before[-3:] == ["late", "middle", "old"]
    assert await exported(rt) != file  # other ids
    async with rt.db.read() as session:
        oldest = await session.scalar(select(Link.created_at).order_by(Link.id).limit(1))
    assert oldest == datetime(2009, 3, 1, 12, tzinfo=UTC)


async def test_an_id_of_the_past_is_never_used_twice(
    rt: Runtime, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The random part is small here, so that most draws hit one that is or was taken."""
    draws = iter([1, 1, 2, 3, 4])
    monkeypatch.setattr("refract.core.ids.secrets.randbits", lambda _bits: next(draws))
    moment = rt.clock.now() - timedelta(days=100)
    async with rt.db.write() as session:
        first = await draw_past_ids(session, make.space(rt), {0: moment, 1: moment})
        session.add(LinkTombstone(link_id=first[0] + 2, purged_at=moment))
        await session.flush()
        second = await draw_past_ids(session, make.space(rt), {0: moment})

    assert [number & 0xFFF for number in (*first.values(), *second.values())] == [1, 2, 4]
