"""Export of a user's data, and deletion of an account."""

import json
import secrets
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, or_, select, update

from refract.core.clock import format_utc
from refract.core.db.session import ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.identity import audit, keys, sessions, tombstones
from refract.identity.errors import LastAdmin
from refract.identity.heirs import lock_accounts, lock_heir_team
from refract.identity.invitations.models import AccountInvitation
from refract.identity.invitations.schemas import AccountInvitationOut
from refract.identity.models import (
    ApiKey,
    AuditEntry,
    BrowserSession,
    SigninLink,
    User,
    UserRole,
    UserStatus,
)
from refract.identity.payloads import FinishAccountDeletion
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.identity.revocation_log import DELETED_ACTION, TEAM_HEIR
from refract.identity.schemas import KeyOut, Me, SessionOut
from refract.jobs.models import MAINTENANCE_SHARE
from refract.jobs.queue import enqueue
from refract.web.models import StoredResponse

DELETED_ISSUER = "deleted"
EXPORT_BATCH_SIZE = 200
"""Rows of one chunk of the export."""
REPEAT_ERASURE_AFTER = timedelta(minutes=2)
"""Delay of the second erasure. It exceeds every request, so those in flight have ended by then."""


async def delete_account(
    session: WriteSession,
    rt: Runtime,
    deletion: AccountDeletion,
    hooks: Sequence[PersonalDataHook],
    *,
    by: User,
) -> None:
    """Delete an account: anonymize its row, erase the data of every feature, add a tombstone.

    The tombstone keeps the same person from signing up again. Raises `LastAdministrator`.
    """
    user = await lock_accounts(session, deletion)
    await require_other_administrator(session, user)
    await _erase_data(session, rt, deletion, hooks)
    await tombstones.add_tombstone(session, rt, user)
    _anonymize(user)
    await session.flush()
    heir = str(deletion.heir.id) if deletion.heir else None
    if deletion.heir_team is not None:
        heir = f"{TEAM_HEIR} {deletion.heir_team}"
    await audit.record_event(
        session, rt, DELETED_ACTION, actor=by, target=str(user.id), detail=heir
    )
    await enqueue(
        session,
        rt,
        FinishAccountDeletion(user_id=user.id),
        run_at=rt.clock.now() + REPEAT_ERASURE_AFTER,
        share=MAINTENANCE_SHARE,
    )


async def delete_restored_account(
    session: WriteSession,
    rt: Runtime,
    user_id: int,
    hooks: Sequence[PersonalDataHook],
    *,
    heir_id: int | None,
    heir_team: int | None,
    bar: bool,
) -> bool:
    """Delete an account that a restored backup brought back; `bar` adds its tombstone again.

    Return False if the backup does not contain the account.
    """
    user = await session.get(User, user_id, with_for_update=True)
    if user is None or user.status == UserStatus.DELETED:
        return False
    heir = await session.get(User, heir_id) if heir_id is not None else None
    if heir_team is not None:
        heir_team = await lock_heir_team(session, user, heir_team, hooks, by_admin=True)
    await _erase_data(session, rt, AccountDeletion(user, heir, heir_team), hooks)
    if bar:
        await tombstones.add_tombstone(session, rt, user)
    _anonymize(user)
    await session.flush()
    await audit.record_event(
        session,
        rt,
        DELETED_ACTION,
        target=str(user_id),
        detail=f"{TEAM_HEIR} {heir_team}" if heir_team else str(heir_id) if heir else None,
    )
    return True


async def repeat_erasure(
    session: WriteSession, rt: Runtime, user_id: int, hooks: Sequence[PersonalDataHook]
) -> None:
    """Erase what requests wrote that were authenticated just before the account was deleted."""
    user = await session.get(User, user_id, with_for_update=True)
    if user is not None and user.status == UserStatus.DELETED:
        await _erase_data(session, rt, AccountDeletion(user), hooks)


async def _erase_data(
    session: WriteSession, rt: Runtime, deletion: AccountDeletion, hooks: Sequence[PersonalDataHook]
) -> None:
    """Erase everything but the row of the account itself."""
    user_id = deletion.user.id
    for hook in hooks:
        await hook.erase(session, rt, deletion)
    for model in (ApiKey, BrowserSession, SigninLink):
        await session.execute(delete(model).where(model.user_id == user_id))
    invitations = (AccountInvitation.inviter_id == user_id, AccountInvitation.user_id == user_id)
    await session.execute(delete(AccountInvitation).where(or_(*invitations)))
    await session.execute(delete(StoredResponse).where(StoredResponse.actor == f"user:{user_id}"))
    own_entries = (AuditEntry.actor_id == user_id, AuditEntry.action != DELETED_ACTION)
    redaction = update(AuditEntry).where(*own_entries).values(target=None, detail=None)
    await session.execute(redaction.execution_options(synchronize_session=False))


def _anonymize(user: User) -> None:
    """Replace personal fields. The pseudonym is random, so the subject does not lead to the row."""
    user.issuer, user.subject = DELETED_ISSUER, secrets.token_hex(16)
    user.email = user.email_folded = user.display_name = ""
    user.email_verified = False
    user.nickname = user.avatar_url = user.bio = None
    user.preferences = {}
    user.role, user.status = UserRole.USER, UserStatus.DELETED


async def require_other_administrator(session: WriteSession, user: User) -> None:
    """Raise `LastAdministrator` if the user is the only active administrator."""
    if user.role != UserRole.ADMIN or user.status != UserStatus.ACTIVE:
        return
    admins = (
        select(User.id)
        .where(User.role == UserRole.ADMIN, User.status == UserStatus.ACTIVE)
        .order_by(User.id)
        .with_for_update()
    )
    if list(await session.scalars(admins)) == [user.id]:
        raise LastAdmin


async def export_account(
    rt: Runtime, user: User, hooks: Sequence[PersonalDataHook]
) -> AsyncGenerator[str, None]:
    """Yield one JSON document in chunks: the profile, then a list for every feature."""
    await audit.record_export(rt, "account", by=user.id)
    async with rt.db.read() as session:
        head = await _build_profile(session, rt, user)
    yield json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    for name, export in [(hook.name, hook.export) for hook in hooks if hook.export is not None]:
        yield f',\n "{name}": ['
        separator = "\n"
        async for row in export(rt, user):
            yield f"{separator}{json.dumps(row, ensure_ascii=False, default=str)}"
            separator = ",\n"
        yield "\n ]"
    yield "\n}\n"


async def _list_invitations(session: ReadSession, rt: Runtime, user: User) -> list[dict[str, Any]]:
    """Return the invitations that a user has sent."""
    sent = select(AccountInvitation).where(AccountInvitation.inviter_id == user.id)
    return [
        AccountInvitationOut.from_invitation(row, user, rt.clock.now()).model_dump(mode="json")
        for row in await session.scalars(sent.order_by(AccountInvitation.id))
    ]


async def _build_profile(session: ReadSession, rt: Runtime, user: User) -> dict[str, Any]:
    fresh = await session.get_one(User, user.id)
    own_keys = await keys.list_keys(session, user, include_revoked=True)
    browsers = await sessions.list_sessions(session, rt, user)
    newest_entries = (
        select(AuditEntry)
        .where(AuditEntry.actor_id == user.id)
        .order_by(AuditEntry.at.desc(), AuditEntry.id.desc())
        .limit(10_000)
    )
    entries = list(await session.scalars(newest_entries))
    account = {
        "issuer": fresh.issuer,
        "subject": fresh.subject,
        "created_at": format_utc(fresh.created_at),
    }
    return {
        "exported_at": format_utc(rt.clock.now()),
        "me": (
            Me.model_validate(fresh).model_dump(mode="json")
            | account
            | {"email_verified": fresh.email_verified}
        ),
        "keys": [KeyOut.from_key(key, rt.clock.now()).model_dump(mode="json") for key in own_keys],
        "sessions": [
            SessionOut.model_validate(browser).model_dump(mode="json") for browser in browsers
        ],
        "account_invitations": await _list_invitations(session, rt, fresh),
        "audit": [
            {
                "at": format_utc(entry.at),
                "action": entry.action,
                "target": entry.target,
                "detail": entry.detail,
            }
            for entry in entries
        ],
    }
