"""State machines of a link's life cycle and ownership, against readable models."""

from collections.abc import Awaitable, Callable
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
from refract.core.errors import InvalidStateTransition, NothingToUndo, RefractError
from refract.core.pagination import CursorCodec
from refract.identity.access import AccessRight
from refract.identity.models import User, UserRole
from refract.links import queries, service
from refract.links.access import LinkCaller
from refract.links.enums import LinkState
from refract.links.errors import (
    ChangedByAdmin,
    ExpiryInPast,
    LinkNotFound,
    NotOwner,
    OwnerExists,
    OwnerNotFound,
    PrimaryOwnerProtected,
    PrimaryOwnerRequired,
    RenewalRequired,
    ShareExists,
    ShareNotFound,
)
from refract.links.models import Link
from refract.links.queries import LinkFilter
from refract.links.schemas import LinkPatch
from refract.tags.models import Tag
from tests import make
from tests.machine import Machine, run_machine

SQLITE_AND_POSTGRESQL = pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
_ALL_TAGS = select(Tag)
SECONDS = st.sampled_from([-60, 0, 1, 60, 3600, 90_000])

Refusal = type[RefractError] | None
Call = Callable[[WriteSession], Awaitable[Any]]


@dataclass
class Version:
    """A link as the model expects it."""

    title: str | None = None
    expires_at: datetime | None = None
    status: str = "active"  # active, disabled or deleted: expiry is computed
    by_admin: bool = False
    tags: frozenset[str] = frozenset()


@dataclass
class Life:
    now: Version = field(default_factory=Version)
    past: list[tuple[str, datetime, bool, Version]] = field(
        default_factory=list
    )  # action, time, by an administrator, result

    def state(self, at: datetime) -> str:
        if self.now.status != "active":
            return self.now.status
        return (
            "expired" if self.now.expires_at is not None and self.now.expires_at <= at else "active"
        )


class LifeCycle(Machine):
    """Links one after the other, with an owner, a co-owner and an administrator."""

    @initialize()
    def people(self) -> None:
        async def begin() -> None:
            async with self.rt.db.write() as session:
                self.users = {
                    name: await make.person(session, self.rt, name) for name in ("ada", "bob")
                }
                self.users["root"] = await make.person(
                    session, self.rt, "root", role=UserRole.ADMIN
                )

        self.run(begin())
        self.lives: dict[int, Life] = {}

    def _who(self, name: str) -> LinkCaller:
        return LinkCaller(self.users[name].id, is_admin=name == "root")

    def _pick(self, choice: int) -> tuple[int, Life]:
        return list(self.lives.items())[choice % len(self.lives)]

    def _try(self, call: Call) -> Refusal:
        async def once() -> None:
            async with self.rt.db.write() as session:
                await call(session)

        return self.outcome(once())

    def _step(
        self,
        choice: int,
        actor: str,
        action: str,
        expected: Refusal,
        after: Version,
        call: Callable[[WriteSession, int], Awaitable[Any]],
    ) -> None:
        """Run a step for real and in the model, and compare the errors."""
        link_id, life = self._pick(choice)
        refused = self._try(lambda session: call(session, link_id))
        assert refused == expected, f"{action} by {actor}: {refused} instead of {expected}"
        if expected is None and after != life.now:
            life.now = after
            life.past.append((action, self.clock.now(), actor == "root", deepcopy(after)))

    @rule(seconds=SECONDS, tags=st.sets(st.sampled_from("xyz"), max_size=2))
    def create(self, seconds: int, tags: set[str]) -> None:
        if len(self.lives) >= 3:
            return
        expires_at = None if seconds == -60 else self.clock.now() + timedelta(seconds=seconds)
        made: list[int] = []

        async def call(session: WriteSession) -> None:
            link = await make.link(
                session, self.rt, self.users["ada"], expires_at=expires_at, tags=sorted(tags)
            )
            await service.add_owner(
                session, self._who("ada"), link.id, "bob@example.com", self.clock.now()
            )
            made.append(link.id)

        refused = self._try(call)
        assert refused == (ExpiryInPast if seconds == 0 else None)
        if made:
            version = Version(expires_at=expires_at, tags=frozenset(tags))
            steps = [
                ("created", self.clock.now(), False, version),
                ("owner_added", self.clock.now(), False, version),
            ]
            self.lives[made[0]] = Life(deepcopy(version), steps)

    @precondition(lambda self: self.lives)
    @rule(
        choice=st.integers(0, 2),
        actor=st.sampled_from(["ada", "bob", "root"]),
        title=st.sampled_from([None, "a", "b"]),
        tags=st.sets(st.sampled_from("xyz")),
    )
    def edit(self, choice: int, actor: str, title: str | None, tags: set[str]) -> None:
        _, life = self._pick(choice)
        expected = InvalidStateTransition if life.now.status == "deleted" else None
        after = Version(
            title, life.now.expires_at, life.now.status, life.now.by_admin, frozenset(tags)
        )
        patch = LinkPatch(title=title, tags=sorted(tags))
        space = make.space(self.rt)
        self._step(
            choice,
            actor,
            "edited",
            expected,
            after,
            lambda session, link: service.edit_link(session, space, self._who(actor), link, patch),
        )

    @precondition(lambda self: self.lives)
    @rule(
        choice=st.integers(0, 2),
        actor=st.sampled_from(["ada", "root"]),
        seconds=SECONDS,
        clear=st.booleans(),
        renew=st.booleans(),
    )
    def move_expiry(self, choice: int, actor: str, seconds: int, clear: bool, renew: bool) -> None:
        _, life = self._pick(choice)
        expires_at = None if clear else self.clock.now() + timedelta(seconds=seconds)
        past = (
            expires_at is not None
            and expires_at <= self.clock.now()
            and (renew or expires_at != life.now.expires_at)
        )
        expected = (
            InvalidStateTransition
            if life.now.status == "deleted"
            else ExpiryInPast
            if past
            else None
        )
        after = deepcopy(life.now)
        after.expires_at = expires_at
        space = make.space(self.rt)

        async def call(session: WriteSession, link: int) -> None:
            if renew:
                await service.renew_link(
                    session, self._who(actor), link, self.clock.now(), expires_at
                )
            else:
                await service.edit_link(
                    session, space, self._who(actor), link, LinkPatch(expires_at=expires_at)
                )

        self._step(choice, actor, "renewed" if renew else "edited", expected, after, call)

    @precondition(lambda self: self.lives)
    @rule(choice=st.integers(0, 2), actor=st.sampled_from(["ada", "bob", "root"]))
    def disable(self, choice: int, actor: str) -> None:
        _, life = self._pick(choice)
        closing = life.now.status == "disabled" and actor == "root" and not life.now.by_admin
        expected = (
            None if life.state(self.clock.now()) == "active" or closing else InvalidStateTransition
        )
        after = deepcopy(life.now)
        after.status, after.by_admin = "disabled", actor == "root"
        call = lambda session, link: service.disable_link(  # noqa: E731
            session, self._who(actor), link, self.clock.now()
        )
        self._step(choice, actor, "disabled", expected, after, call)

    @precondition(lambda self: self.lives)
    @rule(choice=st.integers(0, 2), actor=st.sampled_from(["ada", "bob", "root"]))
    def enable(self, choice: int, actor: str) -> None:
        _, life = self._pick(choice)
        over = life.now.expires_at is not None and life.now.expires_at <= self.clock.now()
        expected: Refusal = None
        if life.now.status != "disabled":
            expected = InvalidStateTransition
        elif life.now.by_admin and actor != "root":
            expected = ChangedByAdmin
        elif over:
            expected = RenewalRequired
        after = deepcopy(life.now)
        after.status, after.by_admin = "active", False
        call = lambda session, link: service.enable_link(  # noqa: E731
            session, self._who(actor), link, self.clock.now()
        )
        self._step(choice, actor, "enabled", expected, after, call)

    @precondition(lambda self: self.lives)
    @rule(choice=st.integers(0, 2), actor=st.sampled_from(["ada", "root"]))
    def delete(self, choice: int, actor: str) -> None:
        _, life = self._pick(choice)
        after = deepcopy(life.now)
        after.status = "deleted"
        call = lambda session, link: service.delete_link(  # noqa: E731
            session, self._who(actor), link, self.clock.now()
        )
        self._step(choice, actor, "deleted", None, after, call)

    @precondition(lambda self: self.lives)
    @rule(choice=st.integers(0, 2), actor=st.sampled_from(["ada", "root"]))
    def undo(self, choice: int, actor: str) -> None:
        _, life = self._pick(choice)
        action, at, by_admin, _ = life.past[-1]
        expected: Refusal = None
        if action not in ("edited", "disabled", "deleted") or self.clock.now() - at > timedelta(
            hours=24
        ):
            expected = NothingToUndo
        elif by_admin and actor != "root":
            expected = ChangedByAdmin
        after = deepcopy(life.past[-2][3])
        space = make.space(self.rt)
        self._step(
            choice,
            actor,
            "undone",
            expected,
            after,
            lambda session, link: service.undo_link(session, space, self._who(actor), link),
        )

    @rule(seconds=st.sampled_from([1, 59, 3600, 86_400]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def mark_expired(self) -> None:
        assert (
            self._try(lambda session: service.mark_expired(session, self.clock.now(), limit=1))
            is None
        )

    @invariant()
    def the_database_agrees(self) -> None:
        if getattr(self, "lives", None):
            self.run(self._compare())

    async def _compare(self) -> None:
        now = self.clock.now()
        uses: dict[str, int] = {}
        async with self.rt.db.read() as session:
            for link_id, life in self.lives.items():
                card = await queries.load_card(session, await session.get_one(Link, link_id))
                shown = card.to_schema("", now)
                assert (shown.title, shown.expires_at, frozenset(shown.tags)) == (
                    life.now.title,
                    life.now.expires_at,
                    life.now.tags,
                )
                assert (shown.status.value, shown.version) == (life.state(now), len(life.past))
                assert [
                    row.action for row in await queries.list_versions(session, link_id, 100)
                ] == [step[0] for step in reversed(life.past)]
                for tag in life.now.tags if life.now.status != "deleted" else ():
                    uses[tag] = uses.get(tag, 0) + 1
            for state in LinkState:
                page = await queries.load_links_page(
                    session,
                    CursorCodec(self.rt.secret),
                    self._who("ada"),
                    LinkFilter(status=state),
                    now,
                    limit=10,
                    cursor=None,
                )
                assert {link.id for link in page.items} == {
                    link_id for link_id, life in self.lives.items() if life.state(now) == state
                }
            counted = {tag.name: tag.usage_count for tag in await session.scalars(_ALL_TAGS)}
        assert {name: count for name, count in counted.items() if count} == uses


@dataclass
class Hands:
    """The people of a link as the model expects them, and since when they own it."""

    primary: str
    since: dict[str, datetime]
    shares: set[str] = field(default_factory=set)
    deleted: bool = False

    @property
    def others(self) -> set[str]:
        return set(self.since) - {self.primary}

    def relation(self, name: str) -> str:
        if name == "root":
            return "admin"
        if name in self.since:
            return "primary" if name == self.primary else "owner"
        return "recipient" if name in self.shares and not self.deleted else "nobody"

    def own(self, name: str, at: datetime) -> None:
        """Add an owner, who needs no share and owns the link since the first time."""
        self.since.setdefault(name, at)
        self.shares.discard(name)

    def leave(self, name: str, heir: str | None, at: datetime) -> None:
        """Pass co-owned links to the earliest co-owner, others to the heir, or delete them."""
        self.shares.discard(name)
        if name == self.primary and not self.others and heir is None:
            self.deleted = True
        elif name in self.since:
            del self.since[name]
            if name == self.primary:
                self.primary = (
                    min(self.since, key=lambda other: self.since[other])
                    if self.since
                    else str(heir)
                )
                self.own(self.primary, at)


PEOPLE = st.sampled_from(["ada", "bob", "cleo", "dan"])
ACTORS = st.sampled_from(["ada", "bob", "cleo", "dan", "root"])


class Ownership(Machine):
    """Four people and an administrator with two links."""

    @initialize()
    def people(self) -> None:
        async def begin() -> None:
            async with self.rt.db.write() as session:
                self.users: dict[str, User] = {
                    name: await make.person(session, self.rt, name)
                    for name in ("ada", "bob", "cleo", "dan")
                }
                self.users["root"] = await make.person(
                    session, self.rt, "root", role=UserRole.ADMIN
                )
                self.links = [
                    (await make.link(session, self.rt, self.users["ada"])).id for _ in range(2)
                ]

        self.run(begin())
        self.hands = [Hands("ada", {"ada": self.clock.now()}) for _ in self.links]

    def _who(self, name: str) -> LinkCaller:
        return LinkCaller(self.users[name].id, is_admin=name == "root")

    def _may(self, actor: str, number: int, *, transfer: bool = False) -> Refusal:
        relation = self.hands[number].relation(actor)
        if relation == "nobody":
            return LinkNotFound
        allowed = ("primary", "admin") if transfer else ("primary", "owner", "admin")
        if relation in allowed:
            return None
        return PrimaryOwnerRequired if relation == "owner" else NotOwner

    def _check(self, number: int, actor: str, expected: Refusal, function: Any, value: Any) -> bool:
        async def once() -> None:
            async with self.rt.db.write() as session:
                await function(
                    session, self._who(actor), self.links[number], value, self.clock.now()
                )

        assert self.outcome(once()) == expected
        self.clock.advance(1)
        return expected is None

    @rule(number=st.integers(0, 1), actor=ACTORS, name=PEOPLE)
    def add_owner(self, number: int, actor: str, name: str) -> None:
        hands = self.hands[number]
        refusal = self._may(actor, number) or (InvalidStateTransition if hands.deleted else None)
        now = self.clock.now()
        if self._check(
            number,
            actor,
            refusal or (OwnerExists if name in hands.since else None),
            service.add_owner,
            f"{name}@example.com",
        ):
            hands.own(name, now)

    @rule(number=st.integers(0, 1), actor=ACTORS, name=PEOPLE)
    def remove_owner(self, number: int, actor: str, name: str) -> None:
        hands = self.hands[number]
        wrong = (
            PrimaryOwnerProtected
            if name == hands.primary
            else None
            if name in hands.others
            else OwnerNotFound
        )
        if self._check(
            number,
            actor,
            self._may(actor, number) or wrong,
            service.remove_owner,
            self.users[name].id,
        ):
            del hands.since[name]

    @rule(number=st.integers(0, 1), actor=ACTORS, name=PEOPLE)
    def transfer(self, number: int, actor: str, name: str) -> None:
        hands = self.hands[number]
        now = self.clock.now()
        refusal = self._may(actor, number, transfer=True) or (
            InvalidStateTransition if hands.deleted else None
        )
        if self._check(
            number,
            actor,
            refusal or (OwnerExists if name == hands.primary else None),
            service.transfer_link,
            f"{name}@example.com",
        ):
            hands.own(name, now)
            hands.primary = name

    @rule(number=st.integers(0, 1), actor=ACTORS, name=PEOPLE)
    def share(self, number: int, actor: str, name: str) -> None:
        hands = self.hands[number]
        refusal = self._may(actor, number) or (InvalidStateTransition if hands.deleted else None)
        expected = refusal or (
            OwnerExists if name in hands.since else ShareExists if name in hands.shares else None
        )
        if self._check(number, actor, expected, service.share_link, f"{name}@example.com"):
            hands.shares.add(name)

    @rule(number=st.integers(0, 1), actor=ACTORS, name=PEOPLE)
    def unshare(self, number: int, actor: str, name: str) -> None:
        """Remove a share. Its holder may leave without being an owner."""
        hands = self.hands[number]
        leaves = actor == name and hands.relation(name) == "recipient"
        refusal = None if leaves else self._may(actor, number)
        expected = refusal or (None if name in hands.shares else ShareNotFound)
        if self._check(number, actor, expected, service.unshare_link, self.users[name].id):
            hands.shares.remove(name)

    @rule(name=PEOPLE, heir=st.one_of(st.none(), PEOPLE))
    def leave(self, name: str, heir: str | None) -> None:
        """Hand over all links of a person, who may come back: the account itself stays."""
        if heir == name:
            return

        async def once() -> None:
            async with self.rt.db.write() as session:
                await service.hand_over_links(
                    session,
                    self.users[name],
                    self.clock.now(),
                    heir=self.users[heir] if heir else None,
                )

        assert self.outcome(once()) is None
        for hands in self.hands:
            hands.leave(name, heir, self.clock.now())
        self.clock.advance(1)

    @invariant()
    def the_database_agrees(self) -> None:
        if hasattr(self, "hands"):
            self.run(self._compare())

    async def _compare(self) -> None:
        async with self.rt.db.read() as session:
            for link_id, hands in zip(self.links, self.hands, strict=True):
                owners = await queries.list_owners(session, link_id)
                assert [user.subject for owner, user in owners if owner.is_primary] == [
                    hands.primary
                ]
                assert {
                    user.subject for owner, user in owners if not owner.is_primary
                } == hands.others
                assert {
                    user.subject for _, user in await queries.list_shares(session, link_id)
                } == hands.shares
                for name in self.users:
                    try:
                        _, standing = await queries.view_link(session, self._who(name), link_id)
                        rights = "".join(
                            right.name[0] for right in AccessRight if standing.allows(right)
                        )
                    except LinkNotFound:
                        rights = ""
                    expected = {
                        "admin": "VSEMT",
                        "primary": "VSEMT",
                        "owner": "VSEM",
                        "recipient": "VS",
                        "nobody": "",
                    }
                    assert rights == expected[hands.relation(name)]


@SQLITE_AND_POSTGRESQL
def test_life_cycle(database: str, tmp_path: Path) -> None:
    run_machine(LifeCycle, database, tmp_path)


@SQLITE_AND_POSTGRESQL
def test_ownership(database: str, tmp_path: Path) -> None:
    run_machine(Ownership, database, tmp_path)
