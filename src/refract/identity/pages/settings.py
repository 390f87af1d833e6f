"""Settings: profile and preferences, API keys, signed-in browsers, and the way out."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from refract.core.db.session import ReadSession
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity import audit, keys, sessions, users
from refract.identity.account_deletion import delete_account
from refract.identity.authentication import SESSION_COOKIE, Caller
from refract.identity.dependencies import AccountCaller, PersonalDataHooks
from refract.identity.models import Scope, User, UserRole
from refract.identity.personal_data import AccountDeletion
from refract.identity.responses import render_response
from refract.identity.schemas import (
    KeyCreate,
    KeyOut,
    Me,
    ProfileForm,
    ProfilePatch,
    SessionOut,
    get_chosen_preferences,
)
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import LANGUAGES
from refract.web.problems import list_field_errors

router = page_router()
CONFIRM_WORD = "delete"
"""What somebody types who means it."""
KEY_LIFETIMES = (
    ("30", "In 30 days"),
    ("90", "In 90 days"),
    ("365", "In a year"),
    ("never", "Never"),
)
DEFAULT_KEY_LIFETIME = "90"


@router.get("/app/settings")
async def settings_page(request: Request, actor: AccountCaller, rt: Rt) -> Response:
    return await _render_settings(request, actor, rt)


@router.post("/app/settings/profile")
async def change_profile(
    request: Request, actor: AccountCaller, rt: Rt, form: Annotated[ProfileForm, Form()]
) -> Response:
    """What a person says about themselves. An empty field clears what was there."""
    preferences: dict[str, Any] = {
        "language": form.language,
        "time_zone": form.time_zone,
        "suggestions": form.suggestions,
    }
    if form.locale is not None:
        preferences["locale"] = form.locale or None
    if form.auto_confirm is not None:
        preferences["auto_confirm"] = None if form.auto_confirm == "never" else form.auto_confirm
    typed = {
        name: getattr(form, name).strip() or None for name in ("nickname", "bio", "avatar_url")
    }
    try:
        changes = ProfilePatch.model_validate({**typed, "preferences": preferences})
    except ValidationError as exc:
        errors = {
            one.field.removeprefix("preferences."): one.message
            for one in list_field_errors(exc.errors())
        }
        return await _render_settings(
            request,
            actor,
            rt,
            status=422,
            profile={**typed, "preferences": preferences},
            errors=errors,
        )
    async with rt.db.write() as session:
        await users.change_profile(
            session,
            actor.user.id,
            changes.model_dump(exclude_unset=True),
            get_chosen_preferences(changes.preferences),
            at=rt.clock.now(),
        )
    return RedirectResponse("/app/settings", 303)


@router.post("/app/settings/sessions/end-others")
async def end_other_sessions(actor: AccountCaller, rt: Rt) -> Response:
    """Sign out everywhere but here."""
    async with rt.db.write() as session:
        await sessions.end_other_sessions(
            session, actor.user, actor.session.id if actor.session else None
        )
        await audit.record_event(session, rt, "sessions.ended", actor=actor.user)
    return RedirectResponse("/app/settings#sessions-section", 303)


@router.post("/app/settings/sessions/{session_id}/end")
async def end_session(session_id: Id, actor: AccountCaller, rt: Rt) -> Response:
    """Sign one browser out."""
    async with rt.db.write() as session:
        await sessions.end_session_by_id(session, actor.user, session_id)
        await audit.record_event(
            session, rt, "session.ended", actor=actor.user, target=str(session_id)
        )
    return RedirectResponse("/app/settings#sessions-section", 303)


@router.post("/app/settings/delete")
async def delete_my_account(
    request: Request,
    actor: AccountCaller,
    rt: Rt,
    parts: PersonalDataHooks,
    confirm: Annotated[str, Form()] = "",
) -> Response:
    """Delete my account, once its own word for that was typed."""
    if confirm.strip().casefold() != CONFIRM_WORD:
        return await _render_settings(
            request,
            actor,
            rt,
            status=422,
            errors={"confirm": f"Type {CONFIRM_WORD} to show that you mean it."},
        )
    try:
        async with rt.db.write() as session:
            await delete_account(session, rt, AccountDeletion(actor.user), parts, by=actor.user)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await _render_settings(
            request, actor, rt, status=exc.status, errors={"confirm": exc.message}
        )
    response = RedirectResponse("/", 303)
    SESSION_COOKIE.delete(response, rt)
    return response


@router.post("/app/settings/keys")
async def create_key(
    request: Request,
    actor: AccountCaller,
    rt: Rt,
    name: Annotated[str, Form()] = "",
    scopes: Annotated[list[str] | None, Form()] = None,
    days: Annotated[str, Form()] = DEFAULT_KEY_LIFETIME,
) -> Response:
    """Make a key and show it, this once."""
    typed = {"name": name, "scopes": scopes or []}
    values = typed | {"days": days}
    if days not in dict(KEY_LIFETIMES):
        return await _render_settings(
            request,
            actor,
            rt,
            status=422,
            values=values,
            errors={"days": "Choose when it expires."},
        )
    ends = None if days == "never" else rt.clock.now() + timedelta(days=int(days))
    try:
        new = KeyCreate.model_validate(typed | {"expires_at": ends})
    except ValidationError as exc:
        errors = {str(one["loc"][0]): str(one["msg"]) for one in exc.errors()}
        return await _render_settings(request, actor, rt, status=422, values=values, errors=errors)
    try:
        async with rt.db.write() as session:
            row, clear = await keys.create_key(
                session,
                rt,
                actor.user,
                new.name,
                new.scopes,
                expires_at=new.expires_at,
                parent=actor.parent_key,
            )
            await audit.record_event(
                session, rt, "key.created", actor=actor.user, target=row.key_prefix
            )
    except RefractError as exc:
        return await _render_settings(
            request, actor, rt, status=exc.status, values=values, errors={"scopes": exc.message}
        )
    return await _render_settings(request, actor, rt, new_key={"name": row.name, "key": clear})


@router.post("/app/settings/keys/{key_id}/revoke")
async def revoke_key(key_id: Id, actor: AccountCaller, rt: Rt) -> Response:
    async with rt.db.write() as session:
        for row in await keys.revoke_key(session, actor.user, key_id):
            await audit.record_event(
                session, rt, "key.revoked", actor=actor.user, target=row.key_prefix
            )
    return RedirectResponse("/app/settings#keys-section", 303)


async def _render_settings(
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    status: int = 200,
    profile: dict[str, Any] | None = None,
    **context: Any,
) -> HTMLResponse:
    async with rt.db.read() as session:
        mine = await keys.list_keys(session, actor.user, include_revoked=True)
        browsers = await sessions.list_sessions(session, rt, actor.user)
        of_person = rt.singleton(AssistantBudget).load
        budget = await of_person(session, rt, actor.user) if of_person else None
    scopes = [
        Scope.READ,
        Scope.WRITE,
        *([Scope.ADMIN] if actor.user.role == UserRole.ADMIN else []),
        Scope.ACCOUNT,
    ]
    now = rt.clock.now()
    here = actor.session.id if actor.session else None
    return render_response(
        request,
        actor,
        "identity/settings.html",
        status=status,
        page_title="Settings",
        profile=profile or Me.model_validate(actor.user).model_dump(),
        time_zones=sorted(available_timezones()),
        languages=[(locale.tag, locale.name) for locale in LANGUAGES.values()],
        keys=[KeyOut.from_key(key, now) for key in mine],
        key_names={key.id: key.name for key in mine},
        ending_soon={key.id for key in mine if keys.is_expiring_soon(key, now)},
        key_days=KEY_LIFETIMES,
        default_key_days=DEFAULT_KEY_LIFETIME,
        sessions=[
            SessionOut.model_validate(one).model_copy(update={"current": one.id == here})
            for one in browsers
        ],
        allowed_scopes=[str(scope) for scope in scopes],
        confirm_word=CONFIRM_WORD,
        budget=budget,
        **context,
    )


# What the settings show of the assistant's budget. Who keeps it stands above and hands it in when the program is composed.

BudgetLoader = Callable[[ReadSession, Runtime, User], Awaitable[dict[str, Any]]]


class AssistantBudget:
    """Nothing, until somebody keeps one."""

    def __init__(self, _rt: Runtime) -> None:
        self.load: BudgetLoader | None = None
        """How a person stands today, as `identity/settings.html` wants it."""
