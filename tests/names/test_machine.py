"""The namespace against a model: a dictionary from comparison key to holder."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from refract.core.db.session import WriteSession
from refract.core.errors import InvalidStateTransition, RefractError
from refract.core.ids import decode_base62, encode_base62
from refract.links import queries, service
from refract.links.access import LinkCaller
from refract.links.errors import NameNotFound
from refract.names import service as names
from refract.names import similarity
from refract.names.enums import NameTarget
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from tests import make
from tests.machine import Machine, run_machine

DAY = 86_400
WORDS = st.one_of(
    st.sampled_from(
        [
            "plan",
            "Plan",
            "PLANS",
            "plan-a",
            "Plan_A",
            "road_map",
            "road-map",
            "API",
            "admin",
            "no good",
            "-x",
            "ab",
            "AB_c",
        ]
    ),
    st.text(alphabet="abA_-", min_size=1, max_size=4),
)


def key_of(name: str) -> str:
    return name.lower().replace("_", "-")


class TheNamespace(Machine):
    """Links and lists that claim and release names, and are deleted and purged."""

    @initialize()
    def begin(self) -> None:
        async def people() -> None:
            async with self.rt.db.write() as session:
                self.ada = await make.person(session, self.rt, "ada")

        self.run(people())
        self.held: dict[str, tuple[NameTarget, int, str]] = {}
        self.links: dict[int, bool] = {}  # id → whether it is deleted
        self.deleted_at: dict[int, Any] = {}
        self.purged: list[int] = []

    @property
    def who(self) -> LinkCaller:
        return LinkCaller(self.ada.id)

    def _wrong(self, name: str, kind: NameTarget) -> type[RefractError] | None:
        """Return what is wrong with a requested name, in the order of the checks."""
        if key_of(name) in ("api", "admin"):
            return SlugReserved
        good = name.replace("_", "-").replace("-", "").isalnum() and name[0].isalnum()
        if kind is NameTarget.LIST:
            good = good and "_" not in name and name == name.lower() and 3 <= len(name) <= 40
        if not good:
            return InvalidSlug
        return SlugTaken if key_of(name) in self.held else None

    def _try(self, call: Callable[[WriteSession], Awaitable[Any]]) -> type[RefractError] | None:
        async def once() -> None:
            async with self.rt.db.write() as session:
                await call(session)

        return self.outcome(once())

    def _link(self, choice: int) -> int:
        return list(self.links)[choice % len(self.links)]

    @rule(wished=st.lists(WORDS, max_size=3))
    def create(self, wished: list[str]) -> None:
        made: list[int] = []

        async def call(session: WriteSession) -> None:
            made.append(
                (await make.link(session, self.rt, self.ada, names=wished, visibility="public")).id
            )

        malformed = [
            wrong
            for name in wished
            if (wrong := self._wrong(name, NameTarget.LINK)) not in (None, SlugTaken)
        ]
        expected = (
            malformed[0]
            if malformed
            else SlugTaken
            if any(key_of(name) in self.held for name in wished)
            else None
        )
        assert self._try(call) == expected
        self.clock.advance(1)
        if made:
            self.links[made[0]] = False
            for name in wished:
                self.held.setdefault(key_of(name), (NameTarget.LINK, made[0], name))

    @rule(number=st.integers(1, 3), name=WORDS)
    def publish_a_list(self, number: int, name: str) -> None:
        space = make.space(self.rt)
        expected = self._wrong(name, NameTarget.LIST)
        if expected is SlugTaken and self.held[key_of(name)][:2] == (NameTarget.LIST, number):
            return
        assert (
            self._try(
                lambda session: names.claim_names_for(
                    session, space, NameTarget.LIST, number, [name]
                )
            )
            == expected
        )
        if expected is None:
            self.held[key_of(name)] = (NameTarget.LIST, number, name)

    @rule(number=st.integers(1, 3))
    def delete_a_list(self, number: int) -> None:
        assert (
            self._try(lambda session: names.release_names(session, NameTarget.LIST, number)) is None
        )
        self.held = {
            key: holder
            for key, holder in self.held.items()
            if holder[:2] != (NameTarget.LIST, number)
        }

    @precondition(lambda self: self.links)
    @rule(choice=st.integers(0, 9), name=WORDS)
    def add_name(self, choice: int, name: str) -> None:
        link = self._link(choice)
        expected = (
            InvalidStateTransition if self.links[link] else self._wrong(name, NameTarget.LINK)
        )
        assert (
            self._try(
                lambda session: service.add_name(session, make.space(self.rt), self.who, link, name)
            )
            == expected
        )
        if expected is None:
            self.held[key_of(name)] = (NameTarget.LINK, link, name)

    @precondition(lambda self: self.links)
    @rule(choice=st.integers(0, 9), name=WORDS)
    def release_name(self, choice: int, name: str) -> None:
        link = self._link(choice)
        has = self.held.get(key_of(name), (None, None, ""))[:2] == (NameTarget.LINK, link)
        refused = self._try(
            lambda session: service.release_name(session, make.space(self.rt), self.who, link, name)
        )
        assert refused == (None if has else NameNotFound)
        if has:
            del self.held[key_of(name)]

    @precondition(lambda self: self.links)
    @rule(choice=st.integers(0, 9))
    def delete_link(self, choice: int) -> None:
        link = self._link(choice)
        assert (
            self._try(
                lambda session: service.delete_link(session, self.who, link, self.clock.now())
            )
            is None
        )
        if not self.links[link]:
            self.links[link] = True
            self.deleted_at[link] = self.clock.now()

    @rule(days=st.integers(0, 3))
    def purge(self, days: int) -> None:
        self.clock.advance(days * DAY)
        assert (
            self._try(
                lambda session: service.purge_links(session, self.clock.now(), timedelta(days=2))
            )
            is None
        )
        gone = {
            link
            for link, at in self.deleted_at.items()
            if at <= self.clock.now() - timedelta(days=2)
        }
        self.purged += gone
        for link in gone:
            del self.links[link], self.deleted_at[link]
        self.held = {
            key: holder
            for key, holder in self.held.items()
            if holder[0] is not NameTarget.LINK or holder[1] not in gone
        }

    @precondition(lambda self: self.links)
    @rule(choice=st.integers(0, 9), twist=st.sampled_from([str, str.lower, str.upper]))
    def wish_for_a_code(self, choice: int, twist: Callable[[str], str]) -> None:
        """No spelling of a code in use can be claimed."""
        self.clock.advance(DAY)
        code = twist(encode_base62(self._link(choice)))
        assert (
            self._try(lambda session: make.link(session, self.rt, self.ada, name=code)) is SlugTaken
        )

    @rule(typed=WORDS, mark=st.sampled_from(["", ".", "!)", ","]))
    def ask(self, typed: str, mark: str) -> None:
        async def look() -> tuple[Any, bool, list[str]]:
            async with self.rt.db.read() as session:
                found = await queries.resolve_name(session, typed + mark)
                free = await names.check_availability(
                    session, make.space(self.rt), typed, NameTarget.LINK
                )
                return (
                    found,
                    free.available,
                    await queries.suggest_similar_names(
                        session, typed, LinkCaller(0), self.clock.now()
                    ),
                )

        found, available, meant = self.run(look())
        holder = self.held.get(key_of(typed))
        assert (None if found is None else (found.kind, found.target_id)) == (
            holder[:2] if holder else None
        )
        assert available == (self._wrong(typed, NameTarget.LINK) is None)
        assert meant == self._meant(key_of(typed))

    def _meant(self, key: str) -> list[str]:
        """Return similar names by brute force over all visible ones."""
        if len(key) < 2:
            return []
        near_ones = []
        for other, (kind, target, name) in self.held.items():
            edits = similarity.edit_distance(key, other)
            if (
                other != key
                and edits is not None
                and edits < max(len(key), len(other))
                and not (kind is NameTarget.LINK and self.links[target])
            ):
                near_ones.append((edits, other, name))
        return [name for _, _, name in sorted(near_ones)[:3]]

    @invariant()
    def the_database_agrees(self) -> None:
        if hasattr(self, "held"):
            self.run(self._compare())

    async def _compare(self) -> None:
        async with self.rt.db.read() as session:
            for link in self.links:
                found = await queries.resolve_name(session, encode_base62(link))
                assert found is not None
                assert (found.target_id, found.how) == (link, "code")
            for link in self.purged:
                assert await queries.resolve_name(session, encode_base62(link)) is None
            for key, (kind, target, name) in self.held.items():
                found = await queries.resolve_name(session, key)
                assert found is not None
                assert (found.kind, found.target_id, found.how) == (kind, target, "name")
                assert decode_base62(key) not in self.links
                if kind is NameTarget.LINK:
                    assert (
                        name in (await queries.load_card(session, found.link)).names
                        if found.link
                        else False
                    )


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_namespace(database: str, tmp_path: Path) -> None:
    run_machine(TheNamespace, database, tmp_path)
