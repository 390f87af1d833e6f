"""A tag on 50,000 items becomes another one in one transaction, and nobody who writes meanwhile
waits for more than five seconds.

While a real server merges, takes in the words of the items again, and takes the merge back, others
make links, save notes, change the titles of the very items and put the target on new ones. Somebody
looks at the junction table all the time and must never see a half of it.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from httpx import AsyncClient, HTTPError, Response
from sqlalchemy import func, select

from proofs.harness import stage
from proofs.harness.report import Report
from proofs.harness.site import Site, site
from refract.core.db.bulk import insert_rows
from refract.core.runtime import Runtime
from refract.jobs.models import WAITING_STATUSES, Job
from refract.library.models import Item, ItemTag
from refract.library.search.index import build_tokens, write_tokens
from refract.tags import personal_tags
from refract.tags.models import Tag
from refract.tags.service import adjust_usage

LONGEST = 5.0
SLICE = 1_000
PATIENCE = 600.0
Borne = dict[tuple[int, int], datetime]


@dataclass(frozen=True, slots=True)
class Size:
    items: int
    pause: float


SIZES = {"short": Size(items=600, pause=0.05), "full": Size(items=50_000, pause=0.02)}


@dataclass
class Planted:
    """What there is before: every item bears the source, every fifth the target as well."""

    items: list[int]
    source: int
    target: int


@dataclass
class Waits:
    """How long each kind of change took in one part of the proof, and what was not answered as it
    should have been.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def longest(self) -> str:
        return ", ".join(f"{kind} {max(times):.2f}" for kind, times in self.seconds.items())

    @property
    def worst(self) -> float:
        return max((max(times) for times in self.seconds.values()), default=0.0)


async def plant(rt: Runtime, size: Size) -> Planted:
    """Items as the program would store them, a thousand in a transaction."""
    owner, now = (await stage.owner_of(rt)).id, rt.clock.now()
    async with rt.db.write() as session:
        tags = await personal_tags.ensure_tags(session, rt.ids, owner, ["k8s", "Kubernetes"], now)
    source, target = tags["k8s"].id, tags["Kubernetes"].id
    made: list[int] = []
    for start in range(0, size.items, SLICE):
        ids = rt.ids.next_ids(min(SLICE, size.items - start))
        items = [
            {
                "id": number,
                "user_id": owner,
                "text": f"Thought {number}.",
                "title": f"Thought {number}",
                "type": "NOTE",
                "status": "ARCHIVED",
                "pending": False,
                "created_at": now,
                "updated_at": now,
                "confirmed_at": now,
                "version": 1,
            }
            for number in ids
        ]
        borne = [{"item_id": number, "tag_id": source, "created_at": now} for number in ids]
        borne += [{"item_id": number, "tag_id": target, "created_at": now} for number in ids[::5]]
        async with rt.db.write() as session:
            await insert_rows(session, Item, items)
            await insert_rows(session, ItemTag, borne)
            await write_tokens(
                session,
                [
                    {
                        "number": number,
                        "words": build_tokens(owner, [f"Thought {number}", "k8s"], []),
                    }
                    for number in ids
                ],
            )
            await adjust_usage(session, {source: len(ids), target: len(ids[::5])}, now)
        made += ids
    return Planted(made, source, target)


class Others:
    """People who go on writing, each kind of change one after the other, and one who only looks."""

    def __init__(
        self, client: AsyncClient, rt: Runtime, planted: Planted, size: Size, seed: int
    ) -> None:
        self._client, self._rt, self._planted, self._size = client, rt, planted, size
        self._random = random.Random(seed)
        self._number = 0
        self.halves: list[int] = []
        self.fresh: set[int] = set()

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[Waits]:
        """Everybody is at work for as long as the block lasts, and has begun before it does."""
        waits, over = Waits(), asyncio.Event()
        kinds = {
            "a link": self._link,
            "a note": self._note,
            "a title": self._title,
            "a tag": self._tag,
        }
        tasks = [
            asyncio.create_task(self._go_on(kind, change, waits, over))
            for kind, change in kinds.items()
        ]
        tasks.append(asyncio.create_task(self._watch(over)))
        try:
            while len(waits.seconds) < len(kinds):  # noqa: ASYNC110 - five tasks, no event
                await asyncio.sleep(self._size.pause)
            yield waits
        finally:
            over.set()
            await asyncio.gather(*tasks)

    async def _go_on(
        self,
        kind: str,
        change: Callable[[int], Awaitable[Response]],
        waits: Waits,
        over: asyncio.Event,
    ) -> None:
        while not over.is_set():
            self._number += 1
            began = time.monotonic()
            try:
                answer = await change(self._number)
                if not answer.is_success:
                    waits.refused.append(f"{kind}: {answer.status_code} {answer.text[:200]}")
            except HTTPError as exc:
                waits.refused.append(f"{kind}: {exc!r}")
            waits.seconds.setdefault(kind, []).append(time.monotonic() - began)
            await asyncio.sleep(self._size.pause)

    async def _watch(self, over: asyncio.Event) -> None:
        """How many of the items bear the source: all or none."""
        count = select(func.count()).where(ItemTag.tag_id == self._planted.source)
        while not over.is_set():
            async with self._rt.db.read() as session:
                found = await session.scalar(count) or 0
            if found not in (0, len(self._planted.items)):
                self.halves.append(found)
            await asyncio.sleep(5 * self._size.pause)

    async def _link(self, number: int) -> Response:
        return await self._client.post(
            "/links", json={"destination": f"https://example.com/{number}"}
        )

    async def _note(self, number: int) -> Response:
        return await self._client.post(
            "/items", json={"text": f"Another thought {number}.", "enrich": False}
        )

    async def _title(self, number: int) -> Response:
        which = self._random.choice(self._planted.items)
        return await self._client.patch(
            f"/items/{which}", json={"title": f"Another title {number}"}
        )

    async def _tag(self, number: int) -> Response:
        body = {"text": f"Something new {number}.", "enrich": False, "new_tags": ["Kubernetes"]}
        answer = await self._client.post("/items", json=body)
        if answer.is_success:
            self.fresh.add(int(answer.json()["id"]))
        return answer


async def borne(rt: Runtime, planted: Planted) -> Borne:
    async with rt.db.read() as session:
        rows = select(ItemTag.item_id, ItemTag.tag_id, ItemTag.created_at).where(
            ItemTag.tag_id.in_([planted.source, planted.target])
        )
        return {
            (row.item_id, row.tag_id): row.created_at for row in (await session.execute(rows)).all()
        }


async def until_quiet(rt: Runtime) -> None:
    """Until no job about the library waits or is being worked on."""
    open_jobs = (
        select(func.count())
        .select_from(Job)
        .where(
            Job.status.in_([*WAITING_STATUSES, "IN_PROGRESS"]), Job.kind.like("library.reindex%")
        )
    )
    deadline = time.monotonic() + PATIENCE
    while True:
        async with rt.db.read() as session:
            if not await session.scalar(open_jobs):
                return
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)


async def step(
    report: Report, others: Others, rt: Runtime, what: str, call: Callable[[], Awaitable[Response]]
) -> dict[str, Any]:
    """One change of the tag with everybody at work, and then the words of its items."""
    async with others.busy() as waits:
        began = time.monotonic()
        answer = await call()
        took = time.monotonic() - began
    async with others.busy() as after:
        began = time.monotonic()
        await until_quiet(rt)
        words = time.monotonic() - began
    report.bar(f"{what}: answer", answer.status_code, "200", held=answer.status_code == 200)
    report.say(f"{what}: seconds, and until its words were found", f"{took:.2f}, {words:.2f}")
    for phase, seen in (("meanwhile", waits), ("words", after)):
        number = sum(map(len, seen.seconds.values()))
        report.say(f"{what}, {phase}: {number} changes, longest", seen.longest())
        report.bar(
            f"{what}, {phase}: longest wait",
            f"{seen.worst:.2f} s",
            f"≤ {LONGEST:g} s",
            held=seen.worst <= LONGEST,
            timed=True,
        )
        report.none(f"{what}, {phase}: changes refused", len(seen.refused))
        for sentence in seen.refused[:3]:
            report.note(sentence)
    return cast("dict[str, Any]", answer.json()) if answer.is_success else {}


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    report = Report(f"merge of a tag on {size.items:,} items, {dialect}", seed)
    async with site(home, dialect) as made, made.runtime() as rt:
        planted = await plant(rt, size)
        before, key = await borne(rt, planted), await stage.make_key(rt)
        made.start()
        await made.until_complete()
        async with _client(made, key) as client:
            others = Others(client, rt, planted, size, seed)
            body = {"target": str(planted.target), "sources": [str(planted.source)]}
            await step(report, others, rt, "merge", lambda: client.post("/tags/merge", json=body))
            merged = await borne(rt, planted)
            wrong = {(item, planted.target) for item in [*planted.items, *others.fresh]} ^ set(
                merged
            )
            report.none("merge: items with the wrong tags", len(wrong))
            report.none("merge: counts that are wrong", await _wrong_counts(rt, planted, merged))
            found = (
                await client.get("/library", params={"q": f"kubernetes {planted.items[1]}"})
            ).json()["items"]
            report.bar("merge: items found by the new name", len(found), "1", held=len(found) == 1)
            await step(
                report, others, rt, "undo", lambda: client.post(f"/tags/{planted.target}/undo")
            )
            undone = await borne(rt, planted)
            old = {pair: at for pair, at in undone.items() if pair[0] not in others.fresh}
            report.none(
                "undo: items with other tags than before the merge",
                len(set(old.items()) ^ set(before.items())),
            )
            report.none(
                "undo: new items that lost the target",
                sum((item, planted.target) not in undone for item in others.fresh),
            )
            report.none("undo: counts that are wrong", await _wrong_counts(rt, planted, undone))
        report.none("halves of a merge that somebody saw", len(others.halves))
        await made.stop()
    return report


def _client(made: Site, key: str) -> AsyncClient:
    return AsyncClient(
        base_url=f"http://127.0.0.1:{made.port}/api/v1", headers={"X-API-Key": key}, timeout=60
    )


async def _wrong_counts(rt: Runtime, planted: Planted, rows: Borne) -> int:
    async with rt.db.read() as session:
        found = {
            tag.id: tag.usage_count
            for tag in await session.scalars(
                select(Tag).where(Tag.id.in_([planted.source, planted.target]))
            )
        }
    return sum(found[tag_id] != sum(pair[1] == tag_id for pair in rows) for tag_id in found)


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("merge", arguments, __doc__, "sqlite,postgresql,mysql", prove)
