"""API of the caller's own account: profile, sessions and API keys."""

from typing import Annotated, Any

from fastapi import Query, Response
from starlette.responses import StreamingResponse

from refract.core.schemas import Id
from refract.identity import audit, keys, sessions, users
from refract.identity.account_deletion import delete_account, export_account
from refract.identity.authentication import SESSION_COOKIE
from refract.identity.concurrency_limits import start_export
from refract.identity.dependencies import (
    AccountCaller,
    IncludeRevoked,
    PersonalDataHooks,
    ReadCaller,
    WriteCaller,
)
from refract.identity.errors import (
    AdminScopeNotAllowed,
    AmbiguousEmail,
    ExportLimitReached,
    InvalidKeyExpiry,
    KeyNotFound,
    LastAdmin,
    NewOwnerRequired,
    ScopeNotAllowed,
    SessionNotFound,
    UserNotFound,
)
from refract.identity.heirs import choose_heir
from refract.identity.personal_data import AccountDeletion
from refract.identity.schemas import (
    KeyCreate,
    KeyList,
    KeyOut,
    Me,
    NewKey,
    ProfilePatch,
    SessionList,
    SessionOut,
    check_key_expiry,
    get_chosen_preferences,
)
from refract.limits.shared_limits import AddressLimit
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems

_JSON_DOCUMENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "object"}}}}
}

me_router = api_router("/me", "me")
keys_router = api_router("/keys", "keys")


@me_router.get("")
async def read_me(actor: ReadCaller) -> Me:
    """Return the profile of the caller."""
    return Me.model_validate(actor.user)


@me_router.patch("")
async def change_me(changes: ProfilePatch, actor: WriteCaller, rt: Rt) -> Me:
    """Update profile and preferences. Omitted fields are unchanged."""
    async with rt.db.write() as session:
        user = await users.change_profile(
            session,
            actor.user.id,
            changes.model_dump(exclude_unset=True),
            get_chosen_preferences(changes.preferences),
            at=rt.clock.now(),
        )
        return Me.model_validate(user)


@me_router.delete(
    "",
    status_code=204,
    responses=problems(LastAdmin, NewOwnerRequired, UserNotFound, AmbiguousEmail),
)
async def delete_me(
    actor: AccountCaller,
    rt: Rt,
    parts: PersonalDataHooks,
    heir: Annotated[
        str | None,
        Query(
            max_length=255,
            description=(
                "Who takes over your lists, and links that only you own: the email address of a"
                " user, or the handle of a team of yours. Omitted: they are deleted."
            ),
        ),
    ] = None,
) -> Response:
    """Delete the account immediately. This can't be undone.

    Co-owned links go to their co-owners; click counts stay.
    """
    if heir:
        await rt.singleton(AddressLimit).charge_user(actor.user.id, is_admin=actor.is_admin)
    async with rt.db.write() as session:
        deletion = (
            await choose_heir(session, actor.user, heir, parts)
            if heir
            else AccountDeletion(actor.user)
        )
        await delete_account(session, rt, deletion, parts, by=actor.user)
    response = Response(status_code=204)
    if actor.session is not None:
        SESSION_COOKIE.delete(response, rt)
    return response


@me_router.get(
    "/export",
    response_class=StreamingResponse,
    responses=problems(ExportLimitReached) | _JSON_DOCUMENT,
)
async def export_me(actor: ReadCaller, rt: Rt, parts: PersonalDataHooks) -> StreamingResponse:
    """Export all data of the account as one JSON document.

    It contains the profile, keys, sessions and audit entries, and what every feature stores.
    """
    pieces = export_account(rt, actor.user, parts)
    headers = {"Content-Disposition": 'attachment; filename="refract-export.json"'}
    return StreamingResponse(
        await start_export(rt, actor.user.id, pieces),
        media_type="application/json",
        headers=headers,
    )


@me_router.get("/sessions")
async def list_sessions(actor: AccountCaller, rt: Rt) -> SessionList:
    """List the browsers that are signed in to the account."""
    async with rt.db.read() as session:
        browsers = await sessions.list_sessions(session, rt, actor.user)
    current_id = actor.session.id if actor.session else None
    return SessionList(
        items=[
            SessionOut.model_validate(browser).model_copy(
                update={"current": browser.id == current_id}
            )
            for browser in browsers
        ]
    )


@me_router.delete("/sessions", status_code=204)
async def end_all_other_sessions(actor: AccountCaller, rt: Rt) -> Response:
    """End every session but the current one."""
    async with rt.db.write() as session:
        await sessions.end_other_sessions(
            session, actor.user, actor.session.id if actor.session else None
        )
        await audit.record_event(session, rt, "sessions.ended", actor=actor.user)
    return Response(status_code=204)


@me_router.delete("/sessions/{session_id}", status_code=204, responses=problems(SessionNotFound))
async def end_session(session_id: Id, actor: AccountCaller, rt: Rt) -> Response:
    """End one session."""
    async with rt.db.write() as session:
        await sessions.end_session_by_id(session, actor.user, session_id)
        await audit.record_event(
            session, rt, "session.ended", actor=actor.user, target=str(session_id)
        )
    return Response(status_code=204)


@keys_router.get("")
async def list_keys(
    actor: AccountCaller, rt: Rt, include_revoked: IncludeRevoked = False
) -> KeyList:
    """List API keys, newest first."""
    async with rt.db.read() as session:
        own_keys = await keys.list_keys(session, actor.user, include_revoked=include_revoked)
    return KeyList(items=[KeyOut.from_key(key, rt.clock.now()) for key in own_keys])


@keys_router.post(
    "",
    status_code=201,
    responses=problems(ScopeNotAllowed, AdminScopeNotAllowed, InvalidKeyExpiry),
    openapi_extra={"x-secret-fields": ["key"]},
)
async def create_key(new: KeyCreate, actor: AccountCaller, rt: Rt) -> NewKey:
    """Create an API key. Only this response contains the key itself."""
    check_key_expiry(new.expires_at, rt.clock.now())
    async with rt.db.write() as session:
        row, clear = await keys.create_audited_key(
            session, rt, actor.user, new, parent=actor.parent_key
        )
        return NewKey.from_new_key(row, clear)


@keys_router.delete("/{key_id}", status_code=204, responses=problems(KeyNotFound))
async def revoke_key(key_id: Id, actor: AccountCaller, rt: Rt) -> Response:
    """Revoke a key and the keys created with it. It takes effect immediately, in every process."""
    async with rt.db.write() as session:
        await keys.revoke_audited_key(session, rt, actor.user, key_id)
    return Response(status_code=204)


ROUTERS = (me_router, keys_router)
