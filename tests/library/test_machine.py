"""A state machine over items, suggestions, tags and undo, against a readable model."""

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from sqlalchemy import func, select

from refract.core.errors import InvalidStateTransition, NothingToUndo, RefractError
from refract.identity.models import User
from refract.library import service
from refract.library.enrichment.types import EnrichmentProposal, SuggestedTag
from refract.library.models import PENDING_STATUSES, Item, ItemStatus, ItemTag
from refract.library.queries.items import lock_item_row
from refract.library.queries.serializers import serialize_items
from refract.library.schemas import ItemConfirmation, ItemCreate, ItemPatch, SuggestionDecision
from refract.tags.models import Tag
from tests import make
from tests.machine import Machine, run_machine

NAMES = ("engines", "coal", "mills")


@dataclass
class Now:
    """The expected state of an item."""

    status: str
    title: str | None = None
    mine: bool = False
    tags: set[str] = field(default_factory=set)
    suggestions: dict[str, str] = field(default_factory=dict)


@dataclass
class Believed:
    now: Now
    undo: tuple[str, datetime, Now] | None = None


class Review(Machine):
    """Ada captures and decides; enrichment succeeds or fails."""

    @initialize()
    def begin(self) -> None:
        async def person() -> User:
            async with self.rt.db.write() as session:
                return await make.person(session, self.rt, "ada")

        self.ada = self.run(person())
        self.items: dict[int, Believed] = {}

    # -- what happens

    @rule(enrich=st.booleans(), tags=st.sets(st.sampled_from(NAMES), max_size=2))
    def capture(self, enrich: bool, tags: set[str]) -> None:
        async def work() -> int:
            async with self.rt.db.write() as session:
                new = ItemCreate(text="A thought.", enrich=enrich, new_tags=sorted(tags))
                return (await service.capture_item(session, self.rt, self.ada, new)).item.id

        number = self.run(work())
        now = Now("ENRICHING") if enrich else Now("ARCHIVED", "A thought.")
        now.tags = set(tags)
        self.items[number] = Believed(
            now, ("captured", self.clock.now(), Now("DISCARDED", now.title))
        )

    @precondition(lambda self: self.items)
    @rule(data=st.data(), names=st.sets(st.sampled_from(NAMES)))
    def the_assistant_proposes(self, data: st.DataObject, names: set[str]) -> None:
        number, believed = self._pick(data)
        if believed.now.status != "ENRICHING":
            return
        self.run(self._proposed(number, sorted(names)))
        now = believed.now
        now.status = "READY_TO_CONFIRM"
        now.title = now.title if now.mine else "Proposed"
        for name in names:
            now.suggestions.setdefault(name, "PENDING")

    @precondition(lambda self: self.items)
    @rule(data=st.data())
    def the_assistant_fails(self, data: st.DataObject) -> None:
        number, believed = self._pick(data)
        if believed.now.status == "ENRICHING":
            self.run(self._failed(number))
            believed.now.status = "FAILED"

    @precondition(lambda self: self.items)
    @rule(
        data=st.data(),
        tags=st.none() | st.sets(st.sampled_from(NAMES), max_size=2),
        title=st.none() | st.just("Kept"),
    )
    def confirm(self, data: st.DataObject, tags: set[str] | None, title: str | None) -> None:
        number, believed = self._pick(data)
        accept, reject = self._decision(data, believed)
        kept: dict[str, Any] = {"title": title} if title else {}
        if tags is not None:
            kept |= {"tag_ids": [], "new_tags": sorted(tags)}
        allowed = believed.now.status in ("ENRICHING", "READY_TO_CONFIRM", "FAILED")

        self._expect(
            None if allowed else InvalidStateTransition,
            self._on(
                number,
                service.confirm_item,
                lambda ids: ItemConfirmation(
                    accept=[ids[name] for name in accept],
                    reject=[ids[name] for name in reject],
                    **kept,
                ),
            ),
        )

        if allowed:
            self._changed(number, "confirmed")
            self._decided(believed.now, accept, reject, tags)
            believed.now.mine = believed.now.mine or bool(title and title != believed.now.title)
            believed.now.title = title or believed.now.title or "A thought."
            believed.now.status = "ARCHIVED"

    @precondition(lambda self: self.items)
    @rule(data=st.data())
    def decide(self, data: st.DataObject) -> None:
        number, believed = self._pick(data)
        accept, reject = self._decision(data, believed)
        allowed = believed.now.status in ("READY_TO_CONFIRM", "FAILED", "ARCHIVED")

        self._expect(
            None if allowed else InvalidStateTransition,
            self._on(
                number,
                service.decide_suggestions,
                lambda ids: SuggestionDecision(
                    accept=[ids[name] for name in accept], reject=[ids[name] for name in reject]
                ),
            ),
        )

        if allowed:
            self._changed(number, "decided")
            self._decided(believed.now, accept, reject, None)

    @precondition(lambda self: self.items)
    @rule(data=st.data(), tags=st.none() | st.sets(st.sampled_from(NAMES), max_size=2))
    def edit(self, data: st.DataObject, tags: set[str] | None) -> None:
        number, believed = self._pick(data)
        changes = {"title": "Mine"} | (
            {"tag_ids": [], "new_tags": sorted(tags)} if tags is not None else {}
        )
        allowed = believed.now.status != "DISCARDED"

        self._expect(
            None if allowed else InvalidStateTransition,
            self._on(number, service.edit_item, lambda _: ItemPatch.model_validate(changes)),
        )

        if allowed:
            self._changed(number, "changed")
            believed.now.mine = believed.now.mine or believed.now.title != "Mine"
            believed.now.title = "Mine"
            believed.now.tags = believed.now.tags if tags is None else set(tags)

    @precondition(lambda self: self.items)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        number, believed = self._pick(data)
        allowed = believed.now.status != "DISCARDED"

        self._expect(
            None if allowed else InvalidStateTransition, self._on(number, service.discard_item)
        )

        if allowed:
            self._changed(number, "discarded")
            believed.now.status, believed.now.tags = "DISCARDED", set()

    @precondition(lambda self: self.items)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        number, believed = self._pick(data)
        allowed = believed.now.status == "FAILED"

        self._expect(
            None if allowed else InvalidStateTransition, self._on(number, service.retry_item)
        )

        if allowed:
            believed.now.status, believed.undo = "ENRICHING", None

    @precondition(lambda self: self.items)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        number, believed = self._pick(data)
        last = believed.undo
        possible = last is not None and self.clock.now() - last[1] <= timedelta(hours=24)

        self._expect(None if possible else NothingToUndo, self._on(number, service.undo_item))

        if possible and last is not None:
            action, _, before = last
            if action == "captured":
                believed.now.status, believed.now.tags = "DISCARDED", set()
            else:
                since = {
                    name: "PENDING"
                    for name in believed.now.suggestions
                    if name not in before.suggestions
                }
                status = (
                    before.status if action in ("confirmed", "discarded") else believed.now.status
                )
                believed.now = Now(
                    status,
                    before.title,
                    before.mine,
                    set(before.tags),
                    {**before.suggestions, **since},
                )
            believed.undo = None

    @rule(hours=st.sampled_from([1, 23, 25]))
    def time_passes(self, hours: int) -> None:
        self.clock.advance(hours * 3600)

    # -- what must hold

    @invariant()
    def the_database_agrees(self) -> None:
        async def read() -> tuple[dict[int, Now], bool, dict[str, int], dict[str, int]]:
            async with self.rt.db.read() as session:
                items = (await session.scalars(select(Item))).all()
                cards = await serialize_items(session, items)
                flags = all(item.pending == (item.status in PENDING_STATUSES) for item in items)
                counted = {tag.name: tag.usage_count for tag in await session.scalars(select(Tag))}
                borne = (
                    select(Tag.name, func.count())
                    .join(ItemTag, ItemTag.tag_id == Tag.id)
                    .group_by(Tag.name)
                )
                true = {row[0]: row[1] for row in (await session.execute(borne)).all()}
            sources = {item.id: item.title_source == "USER" for item in items}
            found = {
                card.id: Now(
                    card.status,
                    card.title,
                    sources[card.id],
                    {tag.name for tag in card.tags},
                    {one.name: one.status.value for one in card.suggestions},
                )
                for card in cards
            }
            return found, flags, counted, true

        if not hasattr(self, "items"):
            return
        found, flags, counted, true = self.run(read())
        assert found == {number: believed.now for number, believed in self.items.items()}
        assert flags
        assert Counter(counted) == Counter(true)

    # -- hands

    def _pick(self, data: st.DataObject) -> tuple[int, Believed]:
        number = data.draw(st.sampled_from(sorted(self.items)))
        return number, self.items[number]

    def _decision(self, data: st.DataObject, believed: Believed) -> tuple[list[str], list[str]]:
        waiting = sorted(
            name for name, status in believed.now.suggestions.items() if status == "PENDING"
        )
        answers = {name: data.draw(st.sampled_from(["yes", "no", "later"])) for name in waiting}
        return [name for name in waiting if answers[name] == "yes"], [
            name for name in waiting if answers[name] == "no"
        ]

    def _changed(self, number: int, action: str) -> None:
        self.items[number].undo = (action, self.clock.now(), deepcopy(self.items[number].now))

    def _decided(
        self, now: Now, accept: list[str], reject: list[str], tags: set[str] | None
    ) -> None:
        now.suggestions |= dict.fromkeys(accept, "ACCEPTED") | dict.fromkeys(reject, "REJECTED")
        now.tags = (now.tags if tags is None else set(tags)) | set(accept)

    def _expect(self, refusal: type[RefractError] | None, work: Any) -> None:
        assert self.outcome(work) == refusal

    async def _on(self, number: int, step: Any, body: Any = None) -> None:
        async with self.rt.db.write() as session:
            held = await service.lock_item(session, self.rt, self.ada.id, number)
            ids = {one.name: one.id for one in held.suggestions}
            await (step(held, body(ids)) if body else step(held))

    async def _proposed(self, number: int, names: list[str]) -> None:
        async with self.rt.db.write() as session:
            item = await lock_item_row(session, number)
            assert item is not None
            proposal = EnrichmentProposal(
                "Proposed", None, [SuggestedTag(name, 0.8, "in the title") for name in names]
            )
            await service.apply_proposal(session, self.rt, item, proposal, final=True)

    async def _failed(self, number: int) -> None:
        async with self.rt.db.write() as session:
            item = await lock_item_row(session, number)
            assert item is not None
            assert item.status == ItemStatus.ENRICHING
            await service.mark_failed(session, self.rt, item, "It could not be reached.")


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_review(database: str, tmp_path: Path) -> None:
    run_machine(Review, database, tmp_path)
