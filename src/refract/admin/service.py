"""Changes of accounts, jobs and bans by administrators. The caller opens the transaction."""

from collections.abc import Sequence
from typing import Any

from refract.admin.queries import get_user
from refract.admin.schemas import LinkDisposition, PersonPatch
from refract.clicks.jobs import enqueue_verification
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity import audit, sessions, tombstones
from refract.identity.account_deletion import delete_account, require_other_administrator
from refract.identity.errors import (
    AccountNotFound,
    SignInLinkNotAllowed,
    SignInLinksDisabled,
)
from refract.identity.heirs import choose_heir
from refract.identity.models import LOCAL_ISSUER, User, UserRole, UserStatus
from refract.identity.personal_data import AccountDeletion, PersonalDataHook
from refract.identity.revocation_log import ALLOWED_ACTION
from refract.jobs import queries as jobs
from refract.jobs.models import Job
from refract.links.safety.blocked_domains import invalidate_all


async def change_person(
    session: WriteSession, rt: Runtime, by: User, user_id: int, changes: PersonPatch
) -> User:
    """Suspend, activate, promote, demote, or change the plan. Each change is audited."""
    user = await _get_live_user(session, user_id)
    patch: dict[str, Any] = changes.model_dump(
        exclude_unset=True, exclude_none=True, exclude={"keep_links"}
    )
    if patch.get("status") == UserStatus.SUSPENDED or patch.get("role") == UserRole.USER:
        await require_other_administrator(session, user)
    for field, value in patch.items():
        if getattr(user, field) != value:
            setattr(user, field, value)
            if field == "role":
                user.admin_by_setting = None  # set by hand: leaving ADMINS no longer removes it
            await audit.record_event(
                session, rt, f"{field}.changed", actor=by, target=str(user.id), detail=value
            )
    if "status" in patch:
        await _hold_links(
            session,
            rt,
            by,
            user,
            hold=user.status == UserStatus.SUSPENDED and not changes.keep_links,
        )
    await session.flush()
    return user


async def _hold_links(
    session: WriteSession, rt: Runtime, by: User, user: User, *, hold: bool
) -> None:
    """Put a user's links and lists on hold, or lift the hold: one row, however many links.

    Every look-up reads the hold of the primary owner, so no link is changed and nothing is lost
    when the hold is lifted.
    """
    if hold == (user.held_at is not None):
        return
    user.held_at = rt.clock.now() if hold else None
    await audit.record_event(
        session, rt, "links.held" if hold else "links.released", actor=by, target=str(user.id)
    )
    await session.flush()
    await invalidate_all(session)


async def delete_person(
    session: WriteSession,
    rt: Runtime,
    by: User,
    user_id: int,
    parts: Sequence[PersonalDataHook],
    *,
    links: LinkDisposition,
    heir: str | None,
) -> None:
    """Delete an account; lists, and links without co-owners, are deleted or go to the heir.

    `heir` is an id, an email address or the handle of a team.
    """
    user = await _get_live_user(session, user_id)
    deletion = AccountDeletion(user)
    if links is LinkDisposition.REASSIGN:
        deletion = await choose_heir(session, user, heir or "", parts, by_admin=True)
    await delete_account(session, rt, deletion, parts, by=by)


async def create_person_signin_link(
    session: WriteSession, rt: Runtime, by: User, user_id: int
) -> tuple[User, str]:
    """Create a one-time sign-in link for a person without an identity provider.

    Raises `SignInLinksDisabled`, `AccountNotFound`, `SignInLinkNotAllowed`.
    """
    if not rt.settings.signin_links_allowed:
        raise SignInLinksDisabled
    user = await _get_live_user(session, user_id)
    if user.issuer != LOCAL_ISSUER or user.status != UserStatus.ACTIVE:
        raise SignInLinkNotAllowed
    return user, await sessions.create_signin_link(session, rt, user, by=by)


async def retry_job(session: WriteSession, rt: Runtime, by: User, job_id: int) -> Job:
    """Requeue a failed job immediately, with all its attempts."""
    job = await jobs.retry_dead_job(session, rt, job_id)
    await audit.record_event(
        session, rt, "job.retried", actor=by, target=str(job_id), detail=job.kind
    )
    return job


async def start_verification(session: WriteSession, rt: Runtime, by: User) -> bool:
    """Start a check of all clicks; return whether none was waiting or running already."""
    is_new = await enqueue_verification(session, rt)
    if is_new:
        await audit.record_event(session, rt, "clicks.verification_started", actor=by)
    return is_new


async def allow_barred(session: WriteSession, rt: Runtime, by: User, tombstone_id: int) -> None:
    """Allow the owner of a deleted account to sign up again. Raises `BarredAccountNotFound`."""
    tombstone = await tombstones.remove_tombstone(session, tombstone_id)
    await audit.record_event(session, rt, ALLOWED_ACTION, actor=by, target=str(tombstone.user_id))


async def _get_live_user(session: WriteSession, user_id: int) -> User:
    user = await get_user(session, user_id)
    if user.status == UserStatus.DELETED:
        raise AccountNotFound
    return user
