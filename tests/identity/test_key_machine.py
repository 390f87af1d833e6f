"""API keys against a model: creation, authentication, and isolation between users."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from sqlalchemy import select

from refract.core.errors import RefractError
from refract.identity import keys
from refract.identity.errors import AdminScopeNotAllowed, KeyNotFound, ScopeNotAllowed
from refract.identity.models import ApiKey, Scope, User, UserStatus
from tests import make
from tests.machine import Machine, run_machine

ADA, BOB, ROOT = PEOPLE = ("ada", "bob", "root")
SCOPES = st.lists(st.sampled_from(list(Scope)), max_size=4)


@dataclass
class Key:
    owner: str
    clear: str
    scopes: list[str]
    active: bool = True
    uses: int = 0
    last: datetime | None = None
    parent: int | None = None


class Keys(Machine):
    """Two people and an administrator."""

    @initialize()
    def begin(self) -> None:
        async def start() -> dict[str, int]:
            async with self.rt.db.write() as session:
                ada, bob = (
                    await make.person(session, self.rt, ADA),
                    await make.person(session, self.rt, BOB),
                )
                root = await make.admin(session, self.rt, ROOT)
                return {ADA: ada.id, BOB: bob.id, ROOT: root.id}

        self.people = self.run(start())
        self.active = dict.fromkeys(PEOPLE, True)
        self.keys: dict[int, Key] = {}

    @rule(owner=st.sampled_from(PEOPLE), scopes=SCOPES, data=st.data())
    def create(self, owner: str, scopes: list[Scope], data: st.DataObject) -> None:
        """In a browser, or by a key that has some scopes itself."""
        self.clock.advance(1)
        usable = [number for number, key in self.keys.items() if key.owner == owner and key.active]
        number = data.draw(st.none() | st.sampled_from(usable)) if usable else None
        by = (
            None
            if number is None
            else frozenset(Scope(scope) for scope in self.keys[number].scopes)
        )
        parent = (
            None if number is None or by is None else keys.ParentKey(number, by, self.people[owner])
        )
        wanted = list(dict.fromkeys(scopes)) or [Scope.READ, Scope.WRITE]
        refusals: list[type[RefractError]] = [
            ScopeNotAllowed if by is not None and scope not in by else AdminScopeNotAllowed
            for scope in wanted
            if (by is not None and scope not in by) or (scope == Scope.ADMIN and owner != ROOT)
        ]

        async def ask() -> None:
            async with self.rt.db.write() as session:
                user = await session.get_one(User, self.people[owner])
                row, clear = await keys.create_key(
                    session, self.rt, user, "a key", scopes, parent=parent
                )
                self.keys[row.id] = Key(
                    owner, clear, [str(scope) for scope in wanted], parent=number
                )

        assert self.outcome(ask()) is (refusals[0] if refusals else None)

    @precondition(lambda self: self.keys)
    @rule(by=st.sampled_from(PEOPLE), data=st.data())
    def revoke(self, by: str, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.keys)))

        async def ask() -> None:
            async with self.rt.db.write() as session:
                await keys.revoke_key(session, await session.get_one(User, self.people[by]), number)

        mine = self.keys[number].owner == by
        assert self.outcome(ask()) is (None if mine else KeyNotFound)
        if mine:
            self._end(number)

    def _end(self, number: int) -> None:
        self.keys[number].active = False
        for child, key in self.keys.items():
            if key.parent == number and key.active:
                self._end(child)

    @rule(who=st.sampled_from((ADA, BOB)), active=st.booleans())
    def suspend(self, who: str, *, active: bool) -> None:
        async def ask() -> None:
            async with self.rt.db.write() as session:
                user = await session.get_one(User, self.people[who])
                user.status = UserStatus.ACTIVE if active else UserStatus.SUSPENDED

        self.run(ask())
        self.active[who] = active

    @precondition(lambda self: self.keys)
    @rule(times=st.integers(1, 5), data=st.data())
    def count(self, times: int, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.keys)))

        async def ask() -> None:
            async with self.rt.db.write() as session:
                await keys.record_key_usage(
                    session, {number: keys.KeyUsageRecord(times, self.clock.now())}
                )

        self.run(ask())
        self.keys[number].uses += times
        self.keys[number].last = self.clock.now()

    @rule(change=st.sampled_from(["", "refract_", "0" * 46]))
    def nobody_comes_in_with_something_else(self, change: str) -> None:
        async def ask() -> object:
            async with self.rt.db.read() as session:
                wrong = (change, *(key.clear[:-1] + "!" for key in self.keys.values()))
                return [await keys.find_key(session, text, self.clock.now()) for text in wrong]

        assert set(self.run(ask())) == {None}  # type: ignore[call-overload]

    @invariant()
    def each_lets_in_whom_it_should(self) -> None:
        if not hasattr(self, "keys"):
            return

        async def look() -> None:
            async with self.rt.db.read() as session:
                for number, key in self.keys.items():
                    found = await keys.find_key(session, key.clear, self.clock.now())
                    assert (found is not None) == (key.active and self.active[key.owner])
                    if found is not None:
                        assert (found[0].id, found[0].scopes, found[1].id) == (
                            number,
                            key.scopes,
                            self.people[key.owner],
                        )
                for name, user_id in self.people.items():
                    user = await session.get_one(User, user_id)
                    own = [
                        number for number in reversed(self.keys) if self.keys[number].owner == name
                    ]
                    assert [
                        row.id for row in await keys.list_keys(session, user, include_revoked=True)
                    ] == own
                    assert [row.id for row in await keys.list_keys(session, user)] == [
                        number for number in own if self.keys[number].active
                    ]
                stored = {
                    row.id: (row.usage_count, row.last_used_at)
                    for row in await session.scalars(select(ApiKey))
                }
            assert stored == {number: (key.uses, key.last) for number, key in self.keys.items()}

        self.run(look())


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_keys_do_what_the_model_says(database: str, tmp_path: Path) -> None:
    run_machine(Keys, database, tmp_path)
