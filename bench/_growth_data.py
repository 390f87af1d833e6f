"""Data sets of the growth bench: links, clicks, tags, items and lists of any size.

Rows are inserted directly, in the proportions of an installation in use. Ada owns 40 % of the
links: some are disabled, expired, deleted, tagged, public, clicked. Bob owns as many, all alike:
active, unlisted, without tags and never clicked, so that a filter that none of them passes has to
prove it without reading all of them. The rest belongs to a hundred others. Events, roll-ups and
totals agree, so that `refract verify` finds no difference.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from refract.clicks.models import ClickEvent, ClickRollup, RollupState, SpoolCheckpoint
from refract.clicks.rollups.breakdowns import build_breakdown_key, encode_counts
from refract.clicks.rollups.granularity import (
    DAY,
    HOUR,
    MONTH,
    QUARTER,
    SIX_HOURS,
    start_of,
    to_datetime,
    to_seconds,
)
from refract.clicks.rollups.sketches import HASH_BYTES, VisitorSketch
from refract.clicks.spool.format import LINK_CLICK
from refract.core.db.bulk import insert_rows
from refract.core.db.types import Model
from refract.core.runtime import Runtime
from refract.library.models import Item, ItemTag, LibraryUsage
from refract.library.search.index import build_tokens, write_tokens
from refract.library.service.storage import measure_usage
from refract.links.models import COPIED_COLUMNS, Link, LinkOwner, LinkTag, LinkTotals
from refract.links.service import digest
from refract.lists.models import LinkList, ListEntry
from refract.names import similarity
from refract.names.models import Name
from refract.tags.models import Tag, build_tag_row
from tests import make

OTHERS = 100
CLICK_DAYS = 3
CLICKS_PER_DAY = 3
SLICE = 5_000
NODE = "bench"
MIN_TAGS = 120
"""Enough to fill a page of tags, at any size."""
RARE_WORD = "quokkas"
"""In the titles of a few links and items, however many there are."""
_VOCABULARY = 20_000
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


@dataclass
class DataSet:
    """What was filled in: who asks, and ids to ask for."""

    ada: int = 0
    bob: int = 0
    keys: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    link_id: int = 0
    list_id: int = 0
    item_id: int = 0


class GrowthFiller:
    """Fills one database with `links` links and what belongs to so many."""

    def __init__(self, rt: Runtime, links: int) -> None:
        self._rt = rt
        self._links = links
        self._random = random.Random(links)
        self._now = rt.clock.now()
        self._words = [
            "".join(self._random.choices(_LETTERS, k=self._random.randint(4, 9)))
            for _ in range(_VOCABULARY)
        ]
        self._weights = list(accumulate(1 / (rank + 1) for rank in range(_VOCABULARY)))
        self._sketches = [self._make_sketch(number) for number in range(50)]
        self._parts = [self._make_parts(number) for number in range(50)]
        self._place = 0
        self._data = DataSet()
        self._others: list[int] = []

    async def fill(self) -> DataSet:
        await self._add_people()
        await self._add_tags()
        await self._add_in_slices(self._links, self._add_links)
        await self._add_click_state()
        await self._add_in_slices(self._links // 5, self._add_items)
        await self._add_in_slices(self._links // 100, self._add_lists)
        await self._add_usage()
        return self._data

    async def _add_in_slices(
        self, count: int, add: Callable[[range], dict[type[Model], list[dict[str, Any]]]]
    ) -> None:
        for start in range(0, count, SLICE):
            rows = add(range(start, min(count, start + SLICE)))
            async with self._rt.db.write() as session:
                for model, some in rows.items():
                    await insert_rows(session, model, some)
                if Item in rows:
                    await write_tokens(session, self._tokens)

    async def _add_people(self) -> None:
        async with self._rt.db.write() as session:
            ada, bob = [await make.person(session, self._rt, name) for name in ("ada", "bob")]
            root = await make.admin(session, self._rt)
            self._others = [
                (await make.person(session, self._rt, f"p{number}")).id for number in range(OTHERS)
            ]
            self._data.ada, self._data.bob = ada.id, bob.id
            for name, user in (("ada", ada), ("bob", bob), ("root", root)):
                self._data.keys[name] = await make.key(
                    session, self._rt, user, *(make.ALL if user is root else make.OWN)
                )
                self._data.cookies[name] = await make.cookie(session, self._rt, user)

    async def _add_tags(self) -> None:
        self._shared = self._rt.ids.next_ids(max(MIN_TAGS, self._links // 100))
        self._personal = self._rt.ids.next_ids(max(MIN_TAGS, self._links // 1000))
        rows = [
            build_tag_row(number, None, f"tag-{place}", f"Tag {place}", self._now)
            for place, number in enumerate(self._shared)
        ]
        rows += [
            build_tag_row(number, self._data.ada, f"mine {place}", f"Mine {place}", self._now)
            for place, number in enumerate(self._personal)
        ]
        for place, row in enumerate(rows):
            row["usage_count"] = len(rows) - place
            row["last_used_at"] = self._now - timedelta(minutes=place) if place % 4 else None
        async with self._rt.db.write() as session:
            await insert_rows(session, Tag, rows)

    def _add_links(self, numbers: range) -> dict[type[Model], list[dict[str, Any]]]:
        rows: dict[type[Model], list[dict[str, Any]]] = {
            model: []
            for model in (Link, Name, LinkOwner, LinkTag, LinkTotals, ClickRollup, ClickEvent)
        }
        ids = self._rt.ids.next_ids(len(numbers))
        for number, link_id in zip(numbers, ids, strict=True):
            owner, dice = self._choose_owner(number), self._random.randrange(1000)
            link = self._build_link(number, link_id, owner, dice)
            rows[Link].append(link)
            rows[Name].append(_build_name(number, link_id, self._now))
            rows[LinkOwner].append(_build_owner(link, owner))
            if owner == self._data.bob:
                continue
            self._data.link_id = link_id if owner == self._data.ada else self._data.link_id
            tags = {self._shared[0]} if dice < 300 else set()
            tags |= {self._shared[number % len(self._shared)]} if dice % 3 == 0 else set()
            rows[LinkTag] += [
                {"link_id": link_id, "tag_id": tag, "owner_id": owner} for tag in sorted(tags)
            ]
            if dice < 600:
                self._add_clicks(rows, number, link_id)
        return rows

    def _choose_owner(self, number: int) -> int:
        share = number % 10
        if share < 8:
            return self._data.ada if share < 4 else self._data.bob
        return self._others[number // 10 % OTHERS]

    def _build_link(self, number: int, link_id: int, owner: int, dice: int) -> dict[str, Any]:
        plain = owner == self._data.bob
        word = RARE_WORD if number in (11, 21, 31) else self._choose_words(1)
        title = f"{word} {self._choose_words(3)}"
        href = f"https://h{dice}.example.com/article/{number}?ref=short"
        status = "active" if plain else _choose_status(dice)
        return {
            "id": link_id,
            "destination": href,
            "href": href,
            "href_digest": digest(href),
            "destination_host": f"h{dice}.example.com",
            "has_placeholders": False,
            "title": title,
            "notes": None,
            "redirect_status": 302,
            "visibility": "unlisted" if plain or dice % 5 else "public",
            "audience": None,
            "random_code": None,
            "forward_query": False,
            "status": status,
            "disabled_by_admin": False,
            "flagged": False,
            "flag_reason": None,
            "checked_at": self._now,
            "expires_at": self._now - timedelta(days=1) if status == "expired" else None,
            "created_at": self._now,
            "updated_at": self._now - timedelta(seconds=number if plain else dice * 7),
            "deleted_at": self._now if status == "deleted" else None,
            "version": 1,
            "search_text": f"s{number}\n{title}\n{href}",
        }

    def _add_clicks(
        self, rows: dict[type[Model], list[dict[str, Any]]], number: int, link_id: int
    ) -> None:
        """Add three clicks in a quarter hour of each of three days, and all they are summed in."""
        month: dict[int, int] = {}
        for place in range(CLICK_DAYS):
            days = (number * 7 + place * 11) % 30 + 1
            at = to_seconds(self._now) - days * 86_400 - number % 80_000
            rows[ClickEvent] += [self._build_event(link_id, at) for _ in range(CLICKS_PER_DAY)]
            for grain in (QUARTER, HOUR, SIX_HOURS, DAY):
                start = start_of(grain, at)
                rows[ClickRollup].append(self._build_rollup(link_id, grain, start, CLICKS_PER_DAY))
            first = start_of(MONTH, at)
            month[first] = month.get(first, 0) + CLICKS_PER_DAY
        for start, clicks in month.items():
            rows[ClickRollup].append(self._build_rollup(link_id, MONTH, start, clicks))
        rows[LinkTotals].append(
            {
                "link_id": link_id,
                "total_clicks": CLICK_DAYS * CLICKS_PER_DAY,
                "bot_clicks": 0,
                "last_clicked_at": self._now - timedelta(seconds=number),
            }
        )

    def _build_event(self, link_id: int, at: int) -> dict[str, Any]:
        self._place += 100
        known = {
            "spool_id": 1,
            "segment": self._place // 1_000_000_000,
            "place": self._place % 1_000_000_000,
            "at": to_datetime(at),
            "kind": LINK_CLICK,
            "target_id": link_id,
            "bot": False,
            "private": False,
            "node": NODE,
            "device": "desktop",
        }
        return {
            column.key: known.get(column.key, None if column.nullable else 0)
            for column in ClickEvent.__table__.columns
        }

    def _build_rollup(self, link_id: int, grain: int, start: int, clicks: int) -> dict[str, Any]:
        pick = link_id % 50
        return {
            "target_id": link_id,
            "kind": LINK_CLICK,
            "grain": grain,
            "start": to_datetime(start),
            "people": clicks,
            "bots": 0,
            "private": 0,
            "uniques": clicks,
            "visitors": None if grain == MONTH else self._sketches[pick],
            "parts": self._parts[pick],
            "settled_clicks": None,
            "edges": None,
            "tops": None,
        }

    async def _add_click_state(self) -> None:
        """Say that all hours are closed, and that every click came from one spool."""
        hour = start_of(HOUR, to_seconds(self._now))
        state = {
            "id": 1,
            "turn": 1,
            "closed_until": to_datetime(hour),
            "quarters_from": to_datetime(start_of(DAY, hour - 40 * 86_400)),
            "days_from": to_datetime(0),
            "months_from": to_datetime(0),
            "outlived": 0,
            "settled_until": to_datetime(start_of(DAY, hour - 40 * 86_400)),
            "settled_target": -1,
        }
        checkpoint = {
            "spool_id": 1,
            "segment": 1,
            "place": 0,
            "node": NODE,
            "stored": self._place // 100,
            "torn": 0,
            "damaged": 0,
            "updated_at": self._now,
        }
        async with self._rt.db.write() as session:
            await session.merge(RollupState(**state))
            await insert_rows(session, SpoolCheckpoint, [checkpoint])

    def _add_items(self, numbers: range) -> dict[type[Model], list[dict[str, Any]]]:
        rows: dict[type[Model], list[dict[str, Any]]] = {Item: [], ItemTag: []}
        self._tokens: list[dict[str, Any]] = []
        ids = self._rt.ids.next_ids(len(numbers))
        for number, item_id in zip(numbers, ids, strict=True):
            owner, dice = self._choose_owner(number), self._random.randrange(1000)
            word = RARE_WORD if number in (11, 21, 31) else self._choose_words(1)
            title, text = f"{word} {self._choose_words(6)}", self._choose_words(25)
            rows[Item].append(self._build_item(item_id, owner, dice, title, text))
            self._tokens.append({"number": item_id, "words": build_tokens(owner, [title], [text])})
            if owner == self._data.ada:
                self._data.item_id = item_id
                tags = {self._personal[0], self._personal[number % len(self._personal)]}
                rows[ItemTag] += [
                    {"item_id": item_id, "tag_id": tag, "created_at": self._now}
                    for tag in sorted(tags)
                    if dice < 700
                ]
        return rows

    def _build_item(
        self, item_id: int, owner: int, dice: int, title: str, text: str
    ) -> dict[str, Any]:
        plain = owner == self._data.bob
        status = "ARCHIVED" if plain or dice >= 60 else "DISCARDED"
        status = "READY_TO_CONFIRM" if dice < 10 and not plain else status
        return {
            "id": item_id,
            "user_id": owner,
            "text": text,
            "url_digest": None if plain else digest(f"https://example.com/{item_id}"),
            "title": title,
            "type": "NOTE" if plain or dice % 3 else "ARTICLE",
            "status": status,
            "pending": status == "READY_TO_CONFIRM",
            "created_at": self._now,
            "updated_at": self._now,
            "confirmed_at": None if status == "READY_TO_CONFIRM" else self._now,
            "version": 1,
        }

    async def _add_usage(self) -> None:
        """Measure each library, as the first item of a user does."""
        async with self._rt.db.write() as session:
            for user_id in (self._data.ada, self._data.bob):
                usage = await measure_usage(session, user_id)
                session.add(LibraryUsage(user_id=user_id, items=usage.items, bytes=usage.bytes))

    def _add_lists(self, numbers: range) -> dict[type[Model], list[dict[str, Any]]]:
        rows: dict[type[Model], list[dict[str, Any]]] = {LinkList: [], ListEntry: [], Name: []}
        ids = self._rt.ids.next_ids(len(numbers))
        for number, list_id in zip(numbers, ids, strict=True):
            owner = self._choose_owner(number)
            self._data.list_id = list_id if owner == self._data.ada else self._data.list_id
            slug, title = f"list{number}", self._choose_words(4)
            is_draft = owner != self._data.bob and number % 20 == 1
            rows[LinkList].append(
                {
                    "id": list_id,
                    "owner_id": owner,
                    "family_id": list_id,
                    "edition": None if is_draft else 1,
                    "title": title,
                    "slug": slug,
                    "status": "draft" if is_draft else "published",
                    "version": 1,
                    "search_text": f"{title}\n{slug}",
                    "created_at": self._now,
                    "updated_at": self._now,
                    "published_at": None if is_draft else self._now,
                    "deleted_at": None,
                    "deleted_by_admin": False,
                }
            )
            if not is_draft:
                rows[Name].append(
                    _build_name(number, list_id, self._now, kind="list", prefix="list")
                )
            rows[ListEntry] += [
                _build_entry(self._rt.ids.next_id(), list_id, place, self._now)
                for place in range(5)
            ]
        return rows

    def _choose_words(self, count: int) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=count))

    def get_word(self, rank: int) -> str:
        """Return a word by its frequency."""
        return self._words[rank]

    def _make_sketch(self, number: int) -> bytes:
        sketch = VisitorSketch()
        visitors = (number * 7919 + visitor * 104_729 for visitor in range(CLICKS_PER_DAY))
        sketch.update(visitor.to_bytes(HASH_BYTES, "big") for visitor in visitors)
        return sketch.to_bytes()

    def _make_parts(self, number: int) -> bytes | None:
        values = {"devices": "desktop", "countries": "DE", "referrers": f"r{number}.example"}
        return encode_counts(
            {
                build_breakdown_key(dimension, value): CLICKS_PER_DAY
                for dimension, value in values.items()
            }
        )


def _choose_status(dice: int) -> str:
    limits: Iterator[tuple[int, str]] = iter(((20, "disabled"), (30, "expired"), (35, "deleted")))
    return next((status for limit, status in limits if dice < limit), "active")


def _build_name(
    number: int, target: int, now: datetime, *, kind: str = "link", prefix: str = "s"
) -> dict[str, Any]:
    key = f"{prefix}{number}"
    head, middle, tail = similarity.split_key(key)
    return {
        "key": key,
        "name": key,
        "kind": kind,
        "target_id": target,
        "head": head,
        "middle": middle,
        "tail": tail,
        "created_at": now,
        "held_until": None,
        "generated": False,
    }


def _build_owner(link: dict[str, Any], owner: int) -> dict[str, Any]:
    return {
        "link_id": link["id"],
        "user_id": owner,
        "primary_link_id": link["id"],
        "added_by": None,
        "created_at": link["created_at"],
        **{name: link[name] for name in COPIED_COLUMNS},
    }


def _build_entry(entry_id: int, list_id: int, place: int, now: datetime) -> dict[str, Any]:
    href = f"https://h{place}.example.com/entry/{entry_id}"
    return {
        "id": entry_id,
        "list_id": list_id,
        "link_id": None,
        "url": href,
        "href": href,
        "host": f"h{place}.example.com",
        "normalized_url": href,
        "normalized_digest": digest(href),
        "title": f"Entry {place}",
        "description": None,
        "image": None,
        "title_by_hand": False,
        "description_by_hand": False,
        "fetch_status": "success",
        "flagged": False,
        "flag_reason": None,
        "checked_at": now,
        "dangerous": False,
        "position": place,
        "created_at": now,
        "updated_at": now,
    }
