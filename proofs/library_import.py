"""An import of 10,000 bookmarks: its progress is seen, it survives being killed, repeats without
duplicates, and goes without a trace.

First through the API, whose worker is killed (SIGKILL) twice on the way and once while rolling
back; then by the command, which is killed once, interrupted (Ctrl-C) once, and run again. In the
end the library is what it was before, tags and their counts included.
"""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from httpx import AsyncClient, HTTPError
from sqlalchemy import func, select

from proofs.harness import stage
from proofs.harness.report import Report
from proofs.harness.site import ROOT, Site, site
from refract.core.db.session import ReadSession
from refract.core.runtime import Runtime
from refract.imports.models import ImportRow, ImportRun
from refract.library import service
from refract.library.models import Item, ItemTag, SavedPage
from refract.library.schemas import ItemCreate
from refract.library.search.models import ItemSearch
from refract.library.service import tag_changes
from refract.tags import personal_tags
from refract.tags.models import Tag, TagAlias

PATIENCE = 900.0
TWICE, BROKEN = 50, 80
"""Every so many rows one repeats the row before, and one is no address."""
IMPORTS = "/library/imports"


@dataclass(frozen=True, slots=True)
class Size:
    rows: int
    kills: tuple[float, ...] = (0.2, 0.5)


SIZES = {"short": Size(rows=1_000, kills=(0.2,)), "full": Size(rows=10_000)}


@dataclass(frozen=True, slots=True)
class File:
    """Bookmarks as a browser writes them, and what should become of them."""

    content: bytes
    created: int
    repeated: int
    refused: int

    @property
    def total(self) -> int:
        return self.created + self.repeated + self.refused


def bookmarks(name: str, rows: int) -> File:
    lines, address, repeated, refused = ["<!DOCTYPE NETSCAPE-Bookmark-file-1>", "<DL><p>"], "", 0, 0
    for number in range(rows):
        if number % BROKEN == BROKEN - 1:
            refused += 1
            lines.append(f'<DT><A HREF="javascript:void({number})">A script</A>')
            continue
        if number % TWICE == TWICE - 1:
            repeated += 1
        else:
            address = f"https://example.com/{name}/{number}"
        tags = f"topic {number % 30},{name},Known" + (",Revived" if number % 10 == 0 else "")
        lines.append(
            f'<DT><A HREF="{address}" ADD_DATE="{1_600_000_000 + number}" TAGS="{tags}">About'
            f" {name} {number}</A>"
        )
    return File(
        "\n".join([*lines, "</DL><p>"]).encode(), rows - repeated - refused, repeated, refused
    )


async def plant(rt: Runtime) -> None:
    """Somebody has a few items, a tag that the file names too, and one that was deleted and that
    the file names again.
    """
    owner = await stage.owner_of(rt)
    async with rt.db.write() as session:
        for number in range(20):
            wish = ItemCreate(text=f"A thought {number}.", enrich=False, new_tags=["Known", "Mine"])
            await service.capture_item(session, rt, owner, wish)
        gone = (
            await personal_tags.ensure_tags(session, rt.ids, owner.id, ["Revived"], rt.clock.now())
        )["Revived"]
        await tag_changes.delete_tag(session, rt.ids, owner.id, gone.id, rt.clock.now())


async def facts(rt: Runtime) -> dict[str, Any]:
    """Everything of the library that an import may touch."""
    async with rt.db.read() as session:
        tags = {
            tag.id: (tag.name, tag.usage_count, tag.deleted_at is not None)
            for tag in await session.scalars(select(Tag))
        }
        borne = select(ItemTag.tag_id, func.count()).group_by(ItemTag.tag_id)
        return {
            "items": await _count(session, Item),
            "tags": tags,
            "tags on items": {  # noqa: C416 - rows are no pairs
                tag_id: number for tag_id, number in (await session.execute(borne)).all()
            },
            **{
                model.__tablename__: await _count(session, model)
                for model in (ItemSearch, SavedPage, TagAlias, ImportRow)
            },
        }


async def _count(session: ReadSession, model: Any) -> int:
    return await session.scalar(select(func.count()).select_from(model)) or 0


async def _items(rt: Runtime) -> int:
    async with rt.db.read() as session:
        return await _count(session, Item)


async def _twice(rt: Runtime) -> int:
    """Addresses that are in the library more than once."""
    async with rt.db.read() as session:
        same = (
            select(Item.url_digest)
            .where(Item.url_digest.is_not(None))
            .group_by(Item.url_digest)
            .having(func.count() > 1)
        )
        return len((await session.scalars(same)).all())


async def until(holds: Callable[[], Awaitable[bool]], pause: float = 0.03) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(pause)


class Watching:
    """Somebody who watches an import, and kills the server when it has got so far."""

    def __init__(self, made: Site, client: AsyncClient, number: str) -> None:
        self._made, self._client, self._number = made, client, number
        self.seen: list[int] = []
        self.killed = 0

    async def now(self) -> dict[str, Any]:
        answer = await self._client.get(f"{IMPORTS}/{self._number}")
        found: dict[str, Any] = answer.raise_for_status().json()
        self.seen.append(found["created"] + found["existing"] + found["refused"])
        return found

    async def to_the_end(self, *ends: str, kill_at: list[float]) -> dict[str, Any]:
        found = await self.now()
        while found["status"] not in ends:
            if kill_at and self.seen[-1] >= kill_at[0] * found["total"]:
                kill_at.pop(0)
                await self.kill()
            await asyncio.sleep(0.02)
            found = await self.now()
        return found

    async def kill(self) -> None:
        self._made.kill_all()
        self.killed += 1
        self._made.start()
        await self._made.until_serving()


async def by_api(
    report: Report, made: Site, rt: Runtime, client: AsyncClient, file: File, size: Size
) -> str:
    began = time.monotonic()
    begun = (
        (await client.post(IMPORTS, content=file.content, params={"name": "first.html"}))
        .raise_for_status()
        .json()
    )
    answered = time.monotonic() - began
    watching = Watching(made, client, begun["id"])
    done = await watching.to_the_end("DONE", "STOPPED", kill_at=list(size.kills))
    report.say(
        "API: seconds until the answer, until the end",
        f"{answered:.2f}, {time.monotonic() - began:.1f}",
    )
    _compare(report, "API", {name: done[name] for name in ("created", "existing", "refused")}, file)
    report.bar(
        "API: times the server was killed",
        watching.killed,
        f"{len(size.kills)}",
        held=watching.killed == len(size.kills),
    )
    steps = len(set(watching.seen))
    report.bar(
        "API: steps of the progress that were seen",
        steps,
        f"≥ {size.rows // 400}",
        held=steps >= size.rows // 400,
    )
    report.none(
        "API: steps back",
        sum(
            later < earlier
            for earlier, later in zip(watching.seen, watching.seen[1:], strict=False)
        ),
    )
    again = (
        (await client.post(IMPORTS, content=file.content, params={"name": "again.html"}))
        .raise_for_status()
        .json()
    )
    repeated = await Watching(made, client, again["id"]).to_the_end("DONE", kill_at=[])
    report.none("API, the same file again: created", repeated["created"])
    report.none("API: addresses that are here twice", await _twice(rt))
    found = (await client.get("/library", params={"q": "about first 7"})).json()["items"]
    report.bar("API: found by its words", len(found) > 0, "yes", held=bool(found))
    return str(begun["id"])


def _compare(report: Report, who: str, found: dict[str, int], file: File) -> None:
    wanted = {"created": file.created, "existing": file.repeated, "refused": file.refused}
    report.bar(
        f"{who}: created, here already, refused",
        " ".join(map(str, found.values())),
        " ".join(map(str, wanted.values())),
        held=found == wanted,
    )


async def by_command(report: Report, made: Site, rt: Runtime, file: File) -> None:
    """Killed, interrupted, and brought to its end."""
    path = made.home / "second.html"
    path.write_bytes(file.content)
    there = await _items(rt)

    async def cut(share: float, blow: signal.Signals) -> tuple[int, str]:
        process = subprocess.Popen(  # noqa: ASYNC220 - it is started, not waited for
            [sys.executable, "-m", "refract", "import", "library", str(path)],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=made.environment() | {"REFRACT_DATA_DIR": str(made.data)},
        )

        async def far_enough() -> bool:
            return process.poll() is not None or await _items(rt) >= there + share * file.created

        await until(far_enough)
        process.send_signal(blow)
        said, _ = await asyncio.to_thread(process.communicate)
        return process.returncode, said

    killed, _ = await cut(0.2, signal.SIGKILL)
    first = await _items(rt) - there
    stopped, said = await cut(0.5, signal.SIGINT)
    second = await _items(rt) - there
    report.bar(
        "command: ended by",
        f"{killed}, {stopped}",
        "-9, 130",
        held=(killed, stopped) == (-signal.SIGKILL, 130),
    )
    report.bar(
        "command: says how to go on",
        "Run the same command again" in said,
        "yes",
        held="Run the same command again" in said,
    )
    report.bar(
        "command: items after each",
        f"{first}, {second}",
        f"< {file.created}",
        held=0 < first < second < file.created,
    )
    last = await asyncio.to_thread(made.refract, "import", "library", str(path))
    there_now = await _items(rt) - there
    report.bar(
        "command: items in the end", there_now, f"{file.created}", held=there_now == file.created
    )
    report.bar(
        "command: what it says",
        last.stdout.strip(),
        f"{file.total:,} rows",
        held=last.stdout.startswith(f"{file.total:,} rows: "),
    )
    report.none("command: addresses that are here twice", await _twice(rt))


async def roll_back(
    report: Report, made: Site, rt: Runtime, client: AsyncClient, by_api: str
) -> None:
    """The first through the API, with a blow; the others by the command, the oldest first."""
    (await client.post(f"{IMPORTS}/{by_api}/rollback")).raise_for_status()
    there = await _items(rt)

    async def begun() -> bool:
        return await _items(rt) < there

    await until(begun)
    watching = Watching(made, client, by_api)
    await watching.kill()
    await watching.to_the_end("ROLLED_BACK", kill_at=[])
    async with rt.db.read() as session:
        others = list(
            await session.scalars(
                select(ImportRun.id).where(ImportRun.id != int(by_api)).order_by(ImportRun.id)
            )
        )
    for number in others:
        done = await asyncio.to_thread(made.refract, "import", "rollback", str(number))
        report.bar(f"roll-back of {number}", done.returncode, "0", held=done.returncode == 0)


async def run(home: Path, dialect: str, size: Size, seed: int) -> Report:
    report = Report(f"import of {size.rows:,} bookmarks, {dialect}", seed)
    first, second = bookmarks("first", size.rows), bookmarks("second", size.rows)
    async with site(home, dialect, REFRACT_JOB_LEASE_SECONDS="2") as made, made.runtime() as rt:
        await plant(rt)
        before, key = await facts(rt), await stage.make_key(rt)
        made.start()
        await made.until_complete()
        async with AsyncClient(
            base_url=f"http://127.0.0.1:{made.port}/api/v1", headers={"X-API-Key": key}, timeout=60
        ) as client:
            number = await by_api(report, made, rt, client, first, size)
            await by_command(report, made, rt, second)
            await roll_back(report, made, rt, client, number)
            try:
                found = (await client.get("/library", params={"q": "about"})).json()["items"]
            except HTTPError as exc:
                report.note(repr(exc))
                found = ["?"]
        after = await facts(rt)
        await made.stop()
    report.none("after the roll-backs: found by its words", len(found))
    for name, value in before.items():
        same = after[name] == value
        left = after[name] if isinstance(value, int) else len(after[name])
        report.bar(
            f"after the roll-backs: {name}",
            left,
            f"{value if isinstance(value, int) else len(value)}",
            held=same,
        )
        if not same:
            report.note(f"{name}: {value} before, {after[name]} after"[:600])
    return report


async def prove(home: Path, dialect: str, size: str, seed: int) -> AsyncIterator[Report]:
    yield await run(home, dialect, SIZES[size], seed)


def main(arguments: list[str]) -> int:
    return stage.main("library-import", arguments, __doc__, "sqlite,postgresql,mysql", prove)
