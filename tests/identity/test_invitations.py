"""Invitations create one account each, end on time and with their inviter, and are not kept."""

import asyncio
import json

import pytest
from sqlalchemy import func, select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.secrets import hash_credential
from refract.identity.account_deletion import delete_account, export_account
from refract.identity.errors import (
    AccountInvitationNotFound,
    EmailTaken,
    InvitationLinkExpired,
    OpenInvitationLimit,
)
from refract.identity.invitations import service
from refract.identity.invitations.models import AccountInvitation
from refract.identity.invitations.schemas import AccountInvitationCreate
from refract.identity.jobs import DeleteExpiredRecords, delete_expired_records
from refract.identity.models import LOCAL_ISSUER, AuditEntry, User, UserRole, UserStatus
from refract.identity.personal_data import AccountDeletion
from refract.registry import list_personal_data_hooks
from tests import make

DAY = 86_400


async def _invite(rt: Runtime, by: User, **given: object) -> tuple[int, str]:
    """Return the id and the token of a new invitation."""
    async with rt.db.write() as session:
        new = AccountInvitationCreate.model_validate(given)
        row, url = await service.create_invitation(session, rt, by, new)
    assert url is not None
    assert url.startswith(f"{rt.settings.public_url}/auth/invitation/")
    return row.id, url.rsplit("/", 1)[1]


async def _accept(rt: Runtime, token: str, name: str = "Grace") -> User | None:
    try:
        async with rt.db.write() as session:
            return await service.accept_invitation(session, rt, token, name)
    except InvitationLinkExpired:
        return None


async def _look(rt: Runtime, token: str) -> AccountInvitation | None:
    async with rt.db.read() as session:
        found = await service.find_invitation(session, rt, token)
    return found[0] if found else None


async def test_an_invitation_creates_one_account_with_its_email_and_role(
    rt: Runtime, root: User
) -> None:
    _, token = await _invite(rt, root, email=" Grace@Example.com ", role="admin")
    for _ in range(2):  # looking does not use it up
        assert await _look(rt, token) is not None

    grace = await _accept(rt, token, "Grace")

    assert grace is not None
    assert (grace.issuer, grace.display_name, grace.role) == (LOCAL_ISSUER, "Grace", "admin")
    assert (grace.email, grace.email_folded) == ("Grace@Example.com", "grace@example.com")
    assert grace.email_verified
    assert await _look(rt, token) is None
    assert await _accept(rt, token) is None
    async with rt.db.read() as session:
        told = await session.execute(
            select(AuditEntry.action, AuditEntry.actor_id).order_by(AuditEntry.id)
        )
        assert [tuple(row) for row in told] == [
            ("invitation.created", root.id),
            ("account.made", grace.id),
            ("invitation.accepted", grace.id),
        ]


async def test_people_without_an_email_have_none_that_counts(rt: Runtime, root: User) -> None:
    people = [await _accept(rt, (await _invite(rt, root))[1], name) for name in ("Ann", "Ben")]
    assert [(who.email, who.email_verified) for who in people if who] == [("", False)] * 2


async def test_of_many_who_accept_at_once_one_gets_an_account(rt: Runtime, root: User) -> None:
    _, token = await _invite(rt, root)
    made = await asyncio.gather(*(_accept(rt, token, f"Person {n}") for n in range(8)))

    assert len([user for user in made if user is not None]) == 1
    async with rt.db.read() as session:
        local = select(func.count()).select_from(User).where(User.issuer == LOCAL_ISSUER)
        assert await session.scalar(local) == 1


async def test_it_ends_on_time_and_when_it_is_revoked(
    rt: Runtime, root: User, clock: ManualClock
) -> None:
    _, short = await _invite(rt, root, valid_days=1)
    number, long = await _invite(rt, root)
    clock.advance(DAY)
    assert await _accept(rt, short) is None
    assert await _look(rt, long) is not None

    async with rt.db.write() as session:
        await service.revoke_invitation(session, rt, root, number)
    assert await _look(rt, long) is None
    assert await _accept(rt, long) is None
    with pytest.raises(AccountInvitationNotFound):
        async with rt.db.write() as session:
            await service.revoke_invitation(session, rt, root, number)


@pytest.mark.parametrize(
    "change",
    [{"status": UserStatus.SUSPENDED}, {"role": UserRole.USER}],
    ids=["suspended", "demoted"],
)
async def test_nobody_returns_by_an_invitation_of_their_own(
    rt: Runtime, root: User, change: dict[str, str]
) -> None:
    """An administrator who has to go must not keep a way back in their pocket."""
    _, token = await _invite(rt, root, role="admin")
    async with rt.db.write() as session:
        inviter = await session.get_one(User, root.id)
        for field, value in change.items():
            setattr(inviter, field, value)

    assert await _look(rt, token) is None
    assert await _accept(rt, token) is None


async def test_a_renewed_link_replaces_the_old_one(rt: Runtime, root: User) -> None:
    number, old = await _invite(rt, root)
    async with rt.db.write() as session:
        row, url = await service.renew_link(session, rt, root, number)
    new = url.rsplit("/", 1)[1]

    assert row.token_hash == hash_credential(new)
    assert await _accept(rt, old) is None
    assert await _accept(rt, new) is not None
    with pytest.raises(AccountInvitationNotFound):
        async with rt.db.write() as session:
            await service.renew_link(session, rt, root, number)


async def test_an_email_belongs_to_one_account(rt: Runtime, root: User, ada: User) -> None:
    with pytest.raises(EmailTaken):
        await _invite(rt, root, email=ada.email.upper())
    (_, first), (_, second) = [await _invite(rt, root, email="grace@example.com") for _ in "12"]
    assert await _accept(rt, first) is not None
    with pytest.raises(EmailTaken):
        await _accept(rt, second)
    assert await _look(rt, second) is not None, "it was not used up"


async def test_only_digests_are_kept_and_not_for_ever(
    rt: Runtime, root: User, clock: ManualClock
) -> None:
    _, token = await _invite(rt, root, valid_days=1)
    _, kept = await _invite(rt, root, valid_days=30)
    async with rt.db.read() as session:
        digests = set(await session.scalars(select(AccountInvitation.token_hash)))
    assert digests == {hash_credential(token), hash_credential(kept)}
    assert len(token) >= 43  # 256 bits

    clock.advance(31 * DAY + 1)
    await delete_expired_records(rt, DeleteExpiredRecords())
    async with rt.db.read() as session:
        left = list(await session.scalars(select(AccountInvitation.token_hash)))
    assert left == [hash_credential(kept)]


async def test_the_number_of_open_invitations_is_limited(
    rt: Runtime, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_OPEN_INVITATIONS", 2)
    _, token = await _invite(rt, root)
    await _invite(rt, root)
    with pytest.raises(OpenInvitationLimit):
        await _invite(rt, root)
    assert await _accept(rt, token) is not None
    await _invite(rt, root)


async def test_a_deleted_account_takes_its_invitations_along(rt: Runtime, root: User) -> None:
    """Those it made, and the one that it was made by."""
    _, token = await _invite(rt, root, name="Grace", email="grace@example.com", role="admin")
    grace = await _accept(rt, token)
    assert grace is not None
    await _invite(rt, grace, name="Hopper")
    await _invite(rt, root, name="Somebody else")
    exported = "".join([piece async for piece in export_account(rt, grace, [])])
    assert [row["name"] for row in json.loads(exported)["account_invitations"]] == ["Hopper"]
    async with rt.db.write() as session:
        await delete_account(
            session, rt, AccountDeletion(grace), list_personal_data_hooks(), by=root
        )
    async with rt.db.read() as session:
        assert list(await session.scalars(select(AccountInvitation.name))) == ["Somebody else"]
    async with rt.db.write() as session:
        await make.person(session, rt, "later")
    await _invite(rt, root, email="grace@example.com")
