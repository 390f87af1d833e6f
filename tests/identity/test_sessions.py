"""Sign-in links work once, sessions expire on time, and only digests are stored."""

import asyncio

import pytest
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.secrets import hash_credential
from refract.identity import sessions
from refract.identity.errors import SignInLinkExpired
from refract.identity.models import BrowserSession, SigninLink, User, UserStatus
from refract.identity.users import ensure_owner


async def _link(rt: Runtime) -> tuple[User, str]:
    async with rt.db.write() as session:
        owner, _ = await ensure_owner(session, rt)
        return owner, (await sessions.create_signin_link(session, rt, owner)).rsplit("/", 1)[1]


async def _spend(rt: Runtime, token: str) -> bool:
    try:
        async with rt.db.write() as session:
            await sessions.use_signin_link(session, rt, token)
    except SignInLinkExpired:
        return False
    return True


async def test_looking_at_a_link_does_not_use_it_up(rt: Runtime) -> None:
    owner, token = await _link(rt)
    for _ in range(2):
        async with rt.db.read() as session:
            seen = await sessions.find_signin_link_user(session, rt, token)
        assert seen is not None
        assert seen.id == owner.id

    assert await _spend(rt, token)
    async with rt.db.read() as session:
        assert await sessions.find_signin_link_user(session, rt, token) is None


async def test_of_many_who_use_one_link_at_once_one_gets_in(rt: Runtime) -> None:
    _, token = await _link(rt)

    assert sorted(await asyncio.gather(*(_spend(rt, token) for _ in range(8)))) == [False] * 7 + [
        True
    ]


async def test_a_link_ends_after_an_hour(rt: Runtime, clock: ManualClock) -> None:
    _, token = await _link(rt)
    clock.advance(3600)

    assert not await _spend(rt, token)


async def test_a_link_of_somebody_suspended_lets_nobody_in(rt: Runtime) -> None:
    owner, token = await _link(rt)
    async with rt.db.write() as session:
        (await session.get_one(User, owner.id)).status = UserStatus.SUSPENDED

    assert not await _spend(rt, token)


async def test_only_digests_are_kept(rt: Runtime) -> None:
    owner, token = await _link(rt)
    async with rt.db.write() as session:
        cookie = await sessions.create_session(session, rt, owner, "Firefox")
        kept = [
            *(await session.scalars(select(SigninLink.token_hash))),
            *(await session.scalars(select(BrowserSession.token_hash))),
        ]

    assert kept == [hash_credential(token), hash_credential(cookie)]
    assert len(cookie) >= 43  # 256 bits


async def test_a_session_ends_when_unused_for_thirty_days_and_after_ninety_in_any_case(
    rt: Runtime, clock: ManualClock
) -> None:
    owner, _ = await _link(rt)
    async with rt.db.write() as session:
        cookie = await sessions.create_session(session, rt, owner, "")
    for _ in range(4):
        clock.advance(25 * 86_400)
        async with rt.db.write() as session:
            found = await sessions.find_session(session, rt, cookie)
            if found is not None:
                await sessions.extend_session(session, rt, owner, found[0])

    async with rt.db.read() as session:
        assert await sessions.find_session(session, rt, cookie) is None


async def test_ending_the_others_keeps_this_one(rt: Runtime) -> None:
    owner, _ = await _link(rt)
    async with rt.db.write() as session:
        cookies = [await sessions.create_session(session, rt, owner, "") for _ in range(3)]
        here = await sessions.find_session(session, rt, cookies[1])
        assert here is not None
        await sessions.end_other_sessions(session, owner, here[0].id)

    async with rt.db.read() as session:
        assert [
            await sessions.find_session(session, rt, cookie) is not None for cookie in cookies
        ] == [
            False,
            True,
            False,
        ]


async def test_what_has_ended_is_removed(rt: Runtime, clock: ManualClock) -> None:
    owner, _ = await _link(rt)
    async with rt.db.write() as session:
        await sessions.create_session(session, rt, owner, "")
    clock.advance(31 * 86_400)
    async with rt.db.write() as session:
        await sessions.delete_expired_sessions(session, rt)
        left = [
            await session.scalar(select(func.count()).select_from(model))
            for model in (SigninLink, BrowserSession)
        ]

    assert left == [0, 0]


async def test_the_owner_account_is_made_once(rt: Runtime) -> None:
    async with rt.db.write() as session:
        first, made = await ensure_owner(session, rt)
    async with rt.db.write() as session:
        second, again = await ensure_owner(session, rt)

    assert (made, again) == (True, False)
    assert first.id == second.id
    assert first.role == "admin"


@pytest.mark.parametrize("agent", ["", "x" * 5000, "\U0001f600" * 200])
async def test_any_user_agent_fits(rt: Runtime, agent: str) -> None:
    owner, _ = await _link(rt)
    async with rt.db.write() as session:
        assert await sessions.create_session(session, rt, owner, agent)


async def test_two_processes_that_start_together_make_one_owner(rt: Runtime) -> None:
    async def ensure() -> int:
        async with rt.db.write() as session:
            return (await ensure_owner(session, rt))[0].id

    assert len(set(await asyncio.gather(*(ensure() for _ in range(5))))) == 1
