"""API keys: shown once, stored as a digest, refused immediately once revoked."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.ids import ALPHABET
from refract.core.runtime import Runtime
from refract.core.secrets import hash_credential
from refract.identity import keys
from refract.identity.errors import AdminScopeNotAllowed, KeyNotFound, ScopeNotAllowed
from refract.identity.key_usage import KeyUsageTracker
from refract.identity.models import ApiKey, Scope, User, UserRole, UserStatus
from refract.identity.users import create_local_user, ensure_owner
from refract.limits.errors import RateLimited


async def _person(rt: Runtime, role: UserRole = UserRole.USER) -> User:
    async with rt.db.write() as session:
        return await create_local_user(
            session, rt, f"{role}@example.com", subject=str(role), role=role
        )


async def _key(rt: Runtime, user: User, *scopes: Scope) -> tuple[ApiKey, str]:
    async with rt.db.write() as session:
        return await keys.create_key(session, rt, user, "Blog automation", list(scopes))


async def _found(rt: Runtime, clear: str) -> bool:
    async with rt.db.read() as session:
        return await keys.find_key(session, clear, rt.clock.now()) is not None


async def test_seed_001_a_key_is_kept_as_blake2b_256_hex_and_its_first_16_characters(
    rt: Runtime,
) -> None:
    _, clear = await _key(rt, await _person(rt))

    async with rt.db.read() as session:
        row = (await session.scalars(select(ApiKey))).one()
    assert row.key_hash == hash_credential(clear)
    assert len(row.key_hash) == 64
    assert row.key_prefix == clear[:16]
    assert clear.startswith("refract_")
    assert clear[16:] not in str(vars(row))


async def test_seed_001_default_scopes_are_read_and_write(rt: Runtime) -> None:
    row, _ = await _key(rt, await _person(rt))

    assert row.scopes == ["read", "write"]


async def test_seed_001_a_revoked_key_is_refused_and_revoking_twice_is_harmless(
    rt: Runtime,
) -> None:
    user = await _person(rt)
    row, clear = await _key(rt, user)
    assert await _found(rt, clear)

    for _ in range(2):
        async with rt.db.write() as session:
            await keys.revoke_key(session, user, row.id)

    assert not await _found(rt, clear)


@pytest.mark.parametrize("status", [UserStatus.SUSPENDED, UserStatus.DELETED])
async def test_a_key_of_somebody_who_is_not_active_is_refused(
    rt: Runtime, status: UserStatus
) -> None:
    user = await _person(rt)
    _, clear = await _key(rt, user)
    async with rt.db.write() as session:
        (await session.get_one(User, user.id)).status = status

    assert not await _found(rt, clear)


async def test_another_persons_key_looks_absent(rt: Runtime) -> None:
    row, clear = await _key(rt, await _person(rt))
    async with rt.db.write() as session:
        owner, _ = await ensure_owner(session, rt)
        with pytest.raises(KeyNotFound):
            await keys.revoke_key(session, owner, row.id)

    assert await _found(rt, clear)


async def test_a_key_makes_keys_with_no_more_than_its_own_scopes(rt: Runtime) -> None:
    user = await _person(rt)
    async with rt.db.write() as session:
        with pytest.raises(ScopeNotAllowed):
            await keys.create_key(
                session,
                rt,
                user,
                "x",
                [Scope.READ, Scope.WRITE],
                parent=keys.ParentKey(1, frozenset({Scope.READ}), user.id),
            )
        with pytest.raises(AdminScopeNotAllowed):
            await keys.create_key(session, rt, user, "x", [Scope.ADMIN])


async def test_usage_is_counted_in_batches_and_survives_two_processes(
    rt: Runtime, clock: ManualClock
) -> None:
    row, _ = await _key(rt, await _person(rt))
    one, two = KeyUsageTracker(rt), KeyUsageTracker(rt)
    for usage in (one, two, one):
        usage.count_key(row.id)
    clock.advance(5)
    two.count_key(row.id)
    for usage in (one, two, one):
        await usage.flush()

    async with rt.db.read() as session:
        seen = await session.get_one(ApiKey, row.id)
    assert seen.usage_count == 4
    assert seen.last_used_at == clock.now()


async def test_seed_001_the_limit_is_a_thousand_an_hour_and_refills(
    rt: Runtime, clock: ManualClock
) -> None:
    row, _ = await _key(rt, await _person(rt))
    usage = KeyUsageTracker(rt)
    for _ in range(1000):
        usage.count_key(row.id)
    with pytest.raises(RateLimited) as caught:
        usage.count_key(row.id)
    assert 1 <= caught.value.retry_after <= 4
    clock.advance(timedelta(hours=1).total_seconds())

    usage.count_key(row.id)


async def test_what_one_process_used_the_other_learns_of(rt: Runtime) -> None:
    row, _ = await _key(rt, await _person(rt))
    one, two = KeyUsageTracker(rt), KeyUsageTracker(rt)
    for _ in range(999):
        one.count_key(row.id)
    await one.flush()
    two.count_key(row.id)
    await two.flush()

    with pytest.raises(RateLimited):
        two.count_key(row.id)


def test_a_key_has_a_checksum_that_catches_a_typing_error() -> None:
    key = keys.generate_key()

    assert keys.is_key_shaped(key)
    for index in range(len("refract_"), len(key)):
        other = ALPHABET[(ALPHABET.index(key[index]) + 1) % 62]
        assert not keys.is_key_shaped(key[:index] + other + key[index + 1 :])


@pytest.mark.parametrize(
    "text", ["", "refract_", "refract_" + "a" * 38, "x" * 5000, "refract_é" + "a" * 37, "Bearer x"]
)
def test_what_does_not_look_like_a_key(text: str) -> None:
    assert not keys.is_key_shaped(text)
