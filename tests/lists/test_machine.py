"""A state machine of drafts, publication, editions, deletion and claims, against a model."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.errors import RefractError
from refract.lists import queries, service
from refract.lists.access import ListCaller
from refract.lists.errors import (
    EmptyList,
    EntryNotFound,
    ListImmutable,
    ListNotFound,
    ListNotPublished,
    OrderMismatch,
    SlugLocked,
)
from refract.lists.models import LinkList, ListEntry
from refract.lists.schemas import ListPatch
from refract.names.errors import SlugTaken
from refract.names.models import Name
from tests import make
from tests.machine import Machine, run_machine

SLUGS = ["reading", "books", "music"]
COOKIES = ["cookie-one", "cookie-two"]
ACTORS = ["ada", "bob", *COOKIES]
Refusal = type[RefractError] | None
Call = Callable[[WriteSession], Awaitable[Any]]
Step = Callable[[WriteSession, int], Awaitable[Any]]


@dataclass
class ModelList:
    """A list in the model. `owner` is a user or a cookie."""

    owner: str
    family: int
    entries: list[int] = field(default_factory=list)
    slug: str | None = None
    edition: int | None = None
    deleted: bool = False

    @property
    def draft(self) -> bool:
        return self.edition is None


class Lists(Machine):
    """Two users and two cookies that compete for three names."""

    @initialize()
    def people(self) -> None:
        async def begin() -> None:
            async with self.rt.db.write() as session:
                self.users = {
                    name: await make.person(session, self.rt, name) for name in ("ada", "bob")
                }

        self.run(begin())
        self.space = make.space(self.rt)
        self.lists: dict[int, ModelList] = {}
        self.names: dict[str, int] = {}

    def _who(self, actor: str) -> ListCaller:
        return (
            ListCaller(self.users[actor].id) if actor in self.users else ListCaller(creator=actor)
        )

    def _pick(self, choice: int) -> tuple[int, ModelList]:
        return list(self.lists.items())[choice % len(self.lists)]

    def _try(self, call: Call) -> tuple[Refusal, Any]:
        made: list[Any] = []

        async def once() -> None:
            async with self.rt.db.write() as session:
                made.append(await call(session))

        refused = self.outcome(once())
        return refused, made[-1] if made and refused is None else None

    def _expect(
        self, choice: int, actor: str, wrong: Refusal, call: Step
    ) -> tuple[int, ModelList, Any]:
        """Return what the model expects: only the owner finds the list."""
        list_id, model = self._pick(choice)
        expected = ListNotFound if model.deleted or model.owner != actor else wrong
        refused, made = self._try(lambda session: call(session, list_id))
        assert refused == expected, f"{actor}: {refused} instead of {expected} for {model}"
        return list_id, model, made if expected is None else _REFUSED

    @rule(actor=st.sampled_from(ACTORS), entries=st.integers(0, 2))
    def create(self, actor: str, entries: int) -> None:
        if len(self.lists) >= 6:
            return
        who = self._who(actor)
        urls = [f"https://example.com/{number}" for number in range(entries)]
        refused, made = self._try(lambda session: make.list_of(session, self.rt, who, *urls))
        assert refused is None
        self.lists[made.id] = ModelList(actor, made.id, self._ids(made.id))

    def _ids(self, list_id: int) -> list[int]:
        async def read() -> list[int]:
            async with self.rt.db.read() as session:
                return [row.entry.id for row in await queries.list_entries(session, list_id)]

        return self.run(read())

    @precondition(lambda self: self.lists)
    @rule(choice=st.integers(0), actor=st.sampled_from(ACTORS))
    def add(self, choice: int, actor: str) -> None:
        _, model = self._pick(choice)
        wrong = None if model.draft else ListImmutable
        address = make.address("https://example.com/more")
        found, model, made = self._expect(
            choice,
            actor,
            wrong,
            lambda session, number: service.add_entries(
                session, self.space, self._who(actor), number, [address]
            ),
        )
        if made is not _REFUSED:
            model.entries = self._ids(found)

    @precondition(lambda self: self.lists)
    @rule(choice=st.integers(0), actor=st.sampled_from(ACTORS), place=st.integers(0, 3))
    def remove(self, choice: int, actor: str, place: int) -> None:
        _, model = self._pick(choice)
        target = model.entries[place] if place < len(model.entries) else 1
        wrong = (None if target != 1 else EntryNotFound) if model.draft else ListImmutable
        _, model, made = self._expect(
            choice,
            actor,
            wrong,
            lambda session, number: service.remove_entry(
                session, self._who(actor), number, target, self.clock.now()
            ),
        )
        if made is not _REFUSED:
            model.entries.remove(target)

    @precondition(lambda self: self.lists)
    @rule(
        choice=st.integers(0), actor=st.sampled_from(ACTORS), broken=st.booleans(), data=st.data()
    )
    def reorder(self, choice: int, actor: str, broken: bool, data: st.DataObject) -> None:
        _, model = self._pick(choice)
        wanted = data.draw(st.permutations(model.entries)) + ([1] if broken else [])
        wrong = (OrderMismatch if broken else None) if model.draft else ListImmutable
        _, model, made = self._expect(
            choice,
            actor,
            wrong,
            lambda session, number: service.reorder_entries(
                session, self._who(actor), number, wanted, self.clock.now()
            ),
        )
        if made is not _REFUSED:
            model.entries = list(wanted)

    @precondition(lambda self: self.lists)
    @rule(
        choice=st.integers(0),
        actor=st.sampled_from(ACTORS),
        title=st.sampled_from([None, "x", "y"]),
    )
    def rename(self, choice: int, actor: str, title: str | None) -> None:
        _, model = self._pick(choice)
        self._expect(
            choice,
            actor,
            None if model.draft else ListImmutable,
            lambda session, number: service.edit_list(
                session, self._who(actor), number, ListPatch(title=title), self.clock.now()
            ),
        )

    @precondition(lambda self: self.lists)
    @rule(
        choice=st.integers(0), actor=st.sampled_from(ACTORS), slug=st.sampled_from([*SLUGS, None])
    )
    def wish(self, choice: int, actor: str, slug: str | None) -> None:
        number, model = self._pick(choice)
        wrong: Refusal = SlugTaken if slug in self.names else None
        if not model.draft:
            wrong = ListImmutable
        elif model.family != number:
            wrong = SlugLocked
        _, model, made = self._expect(
            choice,
            actor,
            wrong,
            lambda session, number: service.set_draft_slug(
                session, self.space, self._who(actor), number, slug
            ),
        )
        if made is not _REFUSED:
            model.slug = slug

    @precondition(lambda self: self.lists)
    @rule(choice=st.integers(0), actor=st.sampled_from(ACTORS))
    def publish(self, choice: int, actor: str) -> None:
        number, model = self._pick(choice)
        family = {key for key, one in self.lists.items() if one.family == model.family}
        wrong: Refusal = None
        if not model.draft:
            wrong = ListImmutable
        elif not model.entries:
            wrong = EmptyList
        elif model.slug in self.names and self.names[model.slug] not in family:
            wrong = SlugTaken
        _, model, made = self._expect(
            choice,
            actor,
            wrong,
            lambda session, number: service.publish_list(
                session, self.space, self._who(actor), number
            ),
        )
        if made is not _REFUSED:
            model.slug = made.slug
            model.edition = 1 + max([self.lists[key].edition or 0 for key in family])
            self.names[made.slug] = number

    @precondition(lambda self: self.lists)
    @rule(choice=st.integers(0), actor=st.sampled_from(ACTORS))
    def begin_edition(self, choice: int, actor: str) -> None:
        _, model = self._pick(choice)
        begun = [
            key
            for key, one in self.lists.items()
            if one.family == model.family and one.draft and not one.deleted
        ]
        _, model, made = self._expect(
            choice,
            actor,
            ListNotPublished if model.draft else None,
            lambda session, number: service.create_edition(
                session, self.space, self._who(actor), number
            ),
        )
        if made is not _REFUSED:
            draft, new = made
            assert new == (not begun)
            if new:
                self.lists[draft.id] = ModelList(
                    model.owner, model.family, self._ids(draft.id), model.slug
                )
            else:
                assert draft.id == begun[0]

    @precondition(lambda self: self.lists)
    @rule(choice=st.integers(0), actor=st.sampled_from(ACTORS))
    def delete(self, choice: int, actor: str) -> None:
        who, now = self._who(actor), self.clock.now()
        number, model, made = self._expect(
            choice,
            actor,
            None,
            lambda session, number: service.delete_list(session, self.rt.ids, who, number, now),
        )
        if made is _REFUSED:
            return
        model.deleted = True
        if number in self.names.values():
            self.names = {slug: holder for slug, holder in self.names.items() if holder != number}
            for one in self.lists.values():
                one.deleted = one.deleted or (one.family == model.family and not one.draft)

    @rule(person=st.sampled_from(["ada", "bob"]), cookie=st.sampled_from(COOKIES))
    def claim(self, person: str, cookie: str) -> None:
        refused, ids = self._try(
            lambda session: service.claim_lists(session, self.users[person].id, cookie)
        )
        assert refused is None
        waiting = [key for key, one in self.lists.items() if one.owner == cookie]
        assert sorted(ids) == sorted(waiting)
        for key in waiting:
            self.lists[key].owner = person

    @invariant()
    def the_database_agrees(self) -> None:
        if not hasattr(self, "lists"):
            return

        async def read() -> tuple[
            dict[str, int], dict[int, LinkList], dict[int, list[tuple[int, int]]]
        ]:
            async with self.rt.db.read() as session:
                names = {name.name: name.target_id for name in await session.scalars(select(Name))}
                rows = {row.id: row for row in await session.scalars(select(LinkList))}
                places: dict[int, list[tuple[int, int]]] = {key: [] for key in rows}
                for entry in await session.scalars(
                    select(ListEntry).order_by(ListEntry.list_id, ListEntry.position)
                ):
                    places[entry.list_id].append((entry.position, entry.id))
                return names, rows, places

        names, rows, places = self.run(read())
        assert names == self.names
        assert set(rows) == set(self.lists)
        for key, model in self.lists.items():
            row = rows[key]
            assert (row.status, row.edition, row.deleted_at is not None) == (
                "draft" if model.draft else "published",
                model.edition,
                model.deleted,
            )
            assert row.slug == model.slug
            assert places[key] == list(enumerate(model.entries, 1))
            assert self._who(model.owner).is_owner_of(row)
            assert not any(
                self._who(other).is_owner_of(row) for other in ACTORS if other != model.owner
            )


_REFUSED = object()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_lists_are_what_the_model_says(database: str, tmp_path: Path) -> None:
    run_machine(Lists, database, tmp_path, examples=8, steps=20)
