"""Personal tags against a readable model: create, rename, delete, merge, undo and aliases."""

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.errors import RefractError
from refract.library.item_tags import set_item_tags
from refract.library.models import Item, ItemStatus, ItemTag
from refract.library.service import tag_changes
from refract.tags import personal_tags
from refract.tags.errors import (
    AliasNotFound,
    NoTagChange,
    NothingToMerge,
    TagExists,
    TagNameReserved,
    TagNotFound,
)
from refract.tags.grammar import personal_key
from refract.tags.models import Tag, TagAlias
from tests import make
from tests.machine import Machine, run_machine
from tests.tags import items

NAMES = ["Alpha", "Beta", "Gamma", "Straße"]
SPELLED = {name: [name, name.upper(), name.lower()] for name in NAMES}
_ITEMS = 4


@dataclass
class Word:
    """A tag as the model expects it."""

    key: str
    deleted: bool = False


@dataclass
class Deed:
    """A merge or a deletion, with everything it moved."""

    tag: int
    action: str
    at: datetime
    sources: list[int] = field(default_factory=list)
    lost: list[tuple[int, int, datetime]] = field(default_factory=list)  # tag, item, since
    gained: set[int] = field(default_factory=set)
    repointed: dict[str, int] = field(default_factory=dict)
    undone: bool = False


class Vocabulary(Machine):
    """One user's tags on a few items."""

    @initialize()
    def begin(self) -> None:
        async def start() -> None:
            async with self.rt.db.write() as session:
                self.ada = await make.person(session, self.rt, "ada")
                self.bob = await make.person(session, self.rt, "bob")
                self.items = [
                    (await items.item(session, self.rt, self.ada)).id for _ in range(_ITEMS)
                ]
                self.foreign = (await items.tag(session, self.rt, self.bob, "Alpha")).id

        self.run(start())
        self.tags: dict[int, Word] = {}
        self.aliases: dict[str, int] = {}
        self.borne: dict[int, dict[int, datetime]] = {number: {} for number in range(_ITEMS)}
        self.discarded: set[int] = set()
        self.deeds: list[Deed] = []

    def _do(self, call: Any) -> tuple[Any, type[RefractError] | None]:
        self.clock.advance(1)

        async def within() -> Any:
            async with self.rt.db.write() as session:
                return await call(session)

        try:
            return self.run(within()), None
        except RefractError as exc:
            return None, type(exc)

    def _by_key(self, key: str) -> int | None:
        if key in self.aliases:
            return self.aliases[key]
        return next((number for number, word in self.tags.items() if word.key == key), None)

    def _pick(self, data: Any, *, live: bool = False) -> int:
        known = [number for number, word in self.tags.items() if not (live and word.deleted)]
        return int(data.draw(st.sampled_from([*known, self.foreign, 12345] if not live else known)))

    @rule(name=st.sampled_from(NAMES), spelling=st.integers(0, 2))
    def create(self, name: str, spelling: int) -> None:
        typed = SPELLED[name][spelling]
        made, refused = self._do(
            lambda session: personal_tags.create_tag(
                session, self.rt.ids, self.ada.id, typed, None, self.rt.clock.now()
            )
        )
        assert refused is None
        known = self._by_key(personal_key(name))
        if known is None:
            assert made.how == "new"
            self.tags[made.tag.id] = Word(personal_key(name))
        else:
            assert (made.tag.id, made.how) == (
                known,
                "revived" if self.tags[known].deleted else "existing",
            )
            self.tags[known].deleted = False

    @precondition(lambda self: any(not word.deleted for word in self.tags.values()))
    @rule(data=st.data(), item=st.integers(0, _ITEMS - 1))
    def put_tags_on_an_item(self, data: Any, item: int) -> None:
        if item in self.discarded:
            return
        live = [number for number, word in self.tags.items() if not word.deleted]
        chosen = set(data.draw(st.lists(st.sampled_from(live), max_size=3)))

        async def call(session: WriteSession) -> None:
            await set_item_tags(
                session, await session.get_one(Item, self.items[item]), chosen, self.rt.clock.now()
            )

        assert self._do(call)[1] is None
        now = self.rt.clock.now()
        self.borne[item] = {number: self.borne[item].get(number, now) for number in chosen}

    @rule(item=st.integers(0, _ITEMS - 1))
    def discard_or_bring_back(self, item: int) -> None:
        """A discarded item has no tags."""

        async def call(session: WriteSession) -> None:
            row = await session.get_one(Item, self.items[item])
            await set_item_tags(session, row, [], self.rt.clock.now())
            row.set_status(ItemStatus.ARCHIVED if item in self.discarded else ItemStatus.DISCARDED)

        assert self._do(call)[1] is None
        self.borne[item] = {}
        self.discarded ^= {item}

    @precondition(lambda self: self.tags)
    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def rename(self, data: Any, name: str) -> None:
        number, key = self._pick(data), personal_key(name)
        _, refused = self._do(
            lambda session: personal_tags.change_tag(session, self.ada.id, number, name=name)
        )
        word = self.tags.get(number)
        holder = next((one for one in self.tags.values() if one.key == key), None)
        if word is None or word.deleted:
            assert refused is TagNotFound
        elif key == word.key:
            assert refused is None
        elif key in self.aliases:
            assert refused is TagNameReserved
        elif holder is not None:
            assert refused is (TagNameReserved if holder.deleted else TagExists)
        else:
            assert refused is None
            word.key = key

    @precondition(lambda self: self.tags)
    @rule(data=st.data())
    def delete(self, data: Any) -> None:
        number = self._pick(data)
        _, refused = self._do(
            lambda session: tag_changes.delete_tag(
                session, self.rt.ids, self.ada.id, number, self.rt.clock.now()
            )
        )
        if number not in self.tags or self.tags[number].deleted:
            assert refused is TagNotFound
            return
        assert refused is None
        deed = Deed(number, "delete", self.rt.clock.now())
        for item, borne in self.borne.items():
            if number in borne:
                deed.lost.append((number, item, borne.pop(number)))
        self.tags[number].deleted = True
        self.deeds.append(deed)

    @precondition(lambda self: len(self.tags) > 1)
    @rule(data=st.data())
    def merge(self, data: Any) -> None:
        target = self._pick(data)
        sources = data.draw(
            st.lists(st.sampled_from([*self.tags, self.foreign]), min_size=1, max_size=2)
        )
        now = self.rt.clock.now() + timedelta(seconds=1)
        _, refused = self._do(
            lambda session: tag_changes.merge_tags(
                session, self.rt.ids, self.ada.id, target, sources, now
            )
        )
        if target in sources:
            assert refused is NothingToMerge
            return
        if any(
            number not in self.tags or self.tags[number].deleted for number in [target, *sources]
        ):
            assert refused is TagNotFound
            return
        assert refused is None
        deed = Deed(target, "merge", now, sorted(set(sources)))
        deed.repointed = {key: owner for key, owner in self.aliases.items() if owner in sources}
        self.aliases |= dict.fromkeys(deed.repointed, target)
        for item, borne in self.borne.items():
            had = {number: borne.pop(number) for number in deed.sources if number in borne}
            deed.lost += [(number, item, since) for number, since in had.items()]
            if had and target not in borne:
                deed.gained.add(item)
                borne[target] = max(had.values())
        for number in deed.sources:
            self.tags[number].deleted = True
            self.aliases[self.tags[number].key] = target
        self.deeds.append(deed)

    @precondition(lambda self: self.tags)
    @rule(data=st.data(), wait=st.sampled_from([0, 0, 0, 25]))
    def undo(self, data: Any, wait: int) -> None:
        number = self._pick(data)
        self.clock.advance(wait * 3600)
        _, refused = self._do(
            lambda session: tag_changes.undo_tag_change(
                session, self.ada.id, number, self.rt.clock.now()
            )
        )
        if number not in self.tags:
            assert refused is TagNotFound
            return
        deed = next(
            (one for one in reversed(self.deeds) if one.tag == number and not one.undone), None
        )
        if (
            deed is None
            or deed.at < self.rt.clock.now() - timedelta(hours=24)
            or not self._can_undo(deed)
        ):
            assert refused is NoTagChange
            return
        assert refused is None
        self._undone(deed)

    def _can_undo(self, deed: Deed) -> bool:
        if deed.action == "delete":
            return self.tags[deed.tag].key not in self.aliases
        meanings = [self.aliases.get(self.tags[source].key, deed.tag) for source in deed.sources]
        return not self.tags[deed.tag].deleted and all(meaning == deed.tag for meaning in meanings)

    def _undone(self, deed: Deed) -> None:
        deed.undone = True
        for number in deed.sources or [deed.tag]:
            self.tags[number].deleted = False
        if deed.action == "merge":
            for source in deed.sources:
                self.aliases.pop(self.tags[source].key, None)
            for key, owner in deed.repointed.items():
                if self.aliases.get(key) == deed.tag:
                    self.aliases[key] = owner
            for item in deed.gained:
                if self.borne[item].get(deed.tag, deed.at + timedelta(1)) <= deed.at:
                    del self.borne[item][deed.tag]
        for number, item, since in deed.lost:
            if item not in self.discarded:
                self.borne[item].setdefault(number, since)

    @precondition(lambda self: self.aliases)
    @rule(data=st.data())
    def forget_an_alias(self, data: Any) -> None:
        key = data.draw(st.sampled_from(sorted(self.aliases)))
        number = self._pick(data)
        _, refused = self._do(
            lambda session: personal_tags.delete_alias(session, self.ada.id, number, key.upper())
        )
        if number not in self.tags or self.tags[number].deleted:
            assert refused is TagNotFound
        elif self.aliases[key] != number:
            assert refused is AliasNotFound
        else:
            assert refused is None
            del self.aliases[key]

    @invariant()
    def the_database_says_the_same(self) -> None:
        if not hasattr(self, "tags"):
            return
        tags, aliases, borne = self.run(self._read())
        assert {tag.id: (tag.key, tag.deleted_at is not None) for tag in tags} == {
            number: (word.key, word.deleted) for number, word in self.tags.items()
        }
        assert aliases == self.aliases
        assert borne == {
            (self.items[item], number): since
            for item, all_of in self.borne.items()
            for number, since in all_of.items()
        }
        for tag in tags:
            assert tag.usage_count == sum(tag.id in one for one in self.borne.values()), tag.name

    async def _read(self) -> tuple[list[Tag], dict[str, int], dict[tuple[int, int], datetime]]:
        async with self.rt.db.read() as session:
            tags = list(await session.scalars(select(Tag).where(Tag.space == self.ada.id)))
            aliases = {alias.key: alias.tag_id for alias in await session.scalars(select(TagAlias))}
            rows = {
                (row.item_id, row.tag_id): row.created_at
                for row in await session.scalars(select(ItemTag))
            }
        return deepcopy(tags), aliases, rows


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_personal_tags_do_what_the_model_says(database: str, tmp_path: Path) -> None:
    run_machine(Vocabulary, database, tmp_path / "machine")
