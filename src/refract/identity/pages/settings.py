"""Settings: profile and preferences, API keys, sessions, export and account deletion."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from refract.core.db.session import ReadSession
from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.core.threads import WorkThreadPool
from refract.identity import audit, keys, sessions, users
from refract.identity.account_deletion import delete_account
from refract.identity.authentication import SESSION_COOKIE, Caller
from refract.identity.dependencies import AccountCaller, PersonalDataHooks
from refract.identity.errors import LastAdmin
from refract.identity.heirs import choose_heir
from refract.identity.models import BrowserSession, Scope, User, UserRole
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
    list_time_zones,
)
from refract.limits.shared_limits import AddressLimit
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import LANGUAGES, gettext, lazy_gettext, ngettext, translate_error
from refract.web.problems import list_field_errors

router = page_router()
BudgetLoader = Callable[[ReadSession, Runtime, User], Awaitable[dict[str, Any]]]
"""Return a user's budget of AI suggestions, as `identity/settings.html` needs it.

The library keeps it; `refract.registry` names it.
"""
BrowserDescriber = Callable[[Sequence[str]], list[tuple[str | None, str | None]]]
"""Return browser and system of user agents. Slow; named by `refract.registry`."""
SAVED_MESSAGES = {
    "profile": lazy_gettext("Profile saved"),
    "preferences": lazy_gettext("Preferences saved"),
    "suggestions": lazy_gettext("Suggestions saved"),
}
CONFIRM_WORD = "delete"
"""The word that a user types to confirm the deletion of their account."""
KEY_LIFETIMES = (
    ("30", lazy_gettext("In 30 days")),
    ("90", lazy_gettext("In 90 days")),
    ("365", lazy_gettext("In a year")),
    ("never", lazy_gettext("Never expires")),
)
DEFAULT_KEY_LIFETIME = "90"


@router.get("/app/settings")
async def settings_page(request: Request, actor: AccountCaller, rt: Rt) -> Response:
    return await _render_settings(request, actor, rt)


@router.post("/app/settings/profile")
async def change_profile(
    request: Request, actor: AccountCaller, rt: Rt, form: Annotated[ProfileForm, Form()]
) -> Response:
    """Save a section: profile, preferences or suggestions. An empty field clears its value."""
    current = Me.model_validate(actor.user).model_dump()
    typed, preferences = form.read_changes()
    try:
        changes = ProfilePatch.model_validate({**typed, "preferences": preferences})
    except ValidationError as exc:
        errors = {
            error.field.removeprefix("preferences."): error.message
            for error in list_field_errors(exc.errors())
        }
        return await _render_settings(
            request,
            actor,
            rt,
            status=422,
            profile=current | typed | {"preferences": current["preferences"] | preferences},
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
    response = RedirectResponse(f"/app/settings#{form.section or 'profile'}-section", 303)
    flash.add(response, rt, str(SAVED_MESSAGES[form.section or "profile"]))
    return response


@router.post("/app/settings/sessions/end-others")
async def end_other_sessions(actor: AccountCaller, rt: Rt) -> Response:
    """End every session of the user but this one."""
    async with rt.db.write() as session:
        await sessions.end_other_sessions(
            session, actor.user, actor.session.id if actor.session else None
        )
        await audit.record_event(session, rt, "sessions.ended", actor=actor.user)
    response = RedirectResponse("/app/settings#sessions-section", 303)
    flash.add(response, rt, gettext("Signed out everywhere else"))
    return response


@router.post("/app/settings/sessions/{session_id}/end")
async def end_session(session_id: Id, actor: AccountCaller, rt: Rt) -> Response:
    """End one session of the user."""
    async with rt.db.write() as session:
        await sessions.end_session_by_id(session, actor.user, session_id)
        await audit.record_event(
            session, rt, "session.ended", actor=actor.user, target=str(session_id)
        )
    response = RedirectResponse("/app/settings#sessions-section", 303)
    flash.add(response, rt, gettext("Signed that browser out"))
    return response


@router.post("/app/settings/delete")
async def delete_my_account(
    request: Request,
    actor: AccountCaller,
    rt: Rt,
    parts: PersonalDataHooks,
    confirm: Annotated[str, Form()] = "",
    heir: Annotated[str, Form(max_length=255)] = "",
) -> Response:
    """Delete the user's account if the form repeats `CONFIRM_WORD`."""
    if confirm.strip().casefold() != CONFIRM_WORD:
        return await _render_settings(
            request,
            actor,
            rt,
            status=422,
            errors={"confirm": gettext("Type “{word}” to confirm.", word=CONFIRM_WORD)},
            values={"heir": heir},
        )
    heir = heir.strip()
    try:
        if heir:
            await rt.singleton(AddressLimit).charge_user(actor.user.id, is_admin=actor.is_admin)
        async with rt.db.write() as session:
            deletion = (
                await choose_heir(session, actor.user, heir, parts)
                if heir
                else AccountDeletion(actor.user)
            )
            await delete_account(session, rt, deletion, parts, by=actor.user)
    except RefractError as exc:
        if exc.status >= 500:
            raise
        return await _render_settings(
            request,
            actor,
            rt,
            status=exc.status,
            errors={"confirm" if isinstance(exc, LastAdmin) else "heir": translate_error(exc)},
            values={"heir": heir},
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
    """Create an API key and show it, the only time."""
    typed = {"name": name, "scopes": scopes or []}
    values = typed | {"days": days}
    if days not in dict(KEY_LIFETIMES):
        return await _render_settings(
            request,
            actor,
            rt,
            status=422,
            values=values,
            errors={"days": gettext("Choose when the key expires.")},
        )
    expires_at = None if days == "never" else rt.clock.now() + timedelta(days=int(days))
    try:
        new = KeyCreate.model_validate(typed | {"expires_at": expires_at})
    except ValidationError as exc:
        errors = _describe_key_errors(exc)
        return await _render_settings(request, actor, rt, status=422, values=values, errors=errors)
    try:
        async with rt.db.write() as session:
            row, clear = await keys.create_audited_key(
                session, rt, actor.user, new, parent=actor.parent_key
            )
    except RefractError as exc:
        return await _render_settings(
            request,
            actor,
            rt,
            status=exc.status,
            values=values,
            errors={"scopes": translate_error(exc)},
        )
    return await _render_settings(request, actor, rt, new_key={"name": row.name, "key": clear})


@router.post("/app/settings/keys/{key_id}/revoke")
async def revoke_key(key_id: Id, actor: AccountCaller, rt: Rt) -> Response:
    async with rt.db.write() as session:
        count = len(await keys.revoke_audited_key(session, rt, actor.user, key_id))
    response = RedirectResponse("/app/settings#keys-section", 303)
    flash.add(response, rt, ngettext("Revoked {n} key", "Revoked {n} keys", count))
    return response


def _describe_key_errors(exc: ValidationError) -> dict[str, str]:
    """Return what is wrong with each field of the form for a new key."""
    known = {
        "name": gettext("Enter a name of at most 100 characters."),
        "scopes": gettext("Select at least one permission."),
    }
    found = list_field_errors(exc.errors())
    return {
        field: known.get(field, error.message)
        for error in found
        for field in [error.field.partition(".")[0]]
    }


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
        own_keys = await keys.list_keys(session, actor.user, include_revoked=True)
        browsers = await sessions.list_sessions(session, rt, actor.user)
        load_budget: BudgetLoader = request.app.state.load_budget
        budget = await load_budget(session, rt, actor.user)
    scopes = [
        Scope.READ,
        Scope.WRITE,
        *([Scope.ADMIN] if actor.user.role == UserRole.ADMIN else []),
        Scope.ACCOUNT,
    ]
    now = rt.clock.now()
    return render_response(
        request,
        actor,
        "identity/settings.html",
        status=status,
        page_title=gettext("Settings"),
        profile=profile or Me.model_validate(actor.user).model_dump(),
        time_zones=list_time_zones(),
        languages=[(locale.tag, locale.name) for locale in LANGUAGES.values()],
        keys=[KeyOut.from_key(key, now) for key in own_keys],
        key_names={key.id: key.name for key in own_keys},
        ending_soon={key.id for key in own_keys if keys.is_expiring_soon(key, now)},
        key_days=KEY_LIFETIMES,
        default_key_days=DEFAULT_KEY_LIFETIME,
        sessions=await _describe_sessions(request, actor, browsers),
        allowed_scopes=[str(scope) for scope in scopes],
        confirm_word=CONFIRM_WORD,
        budget=budget,
        **context,
    )


async def _describe_sessions(
    request: Request, actor: Caller, browsers: Sequence[BrowserSession]
) -> list[SessionOut]:
    """Return the sessions with the names of their browsers, as in “Chrome on macOS”."""
    describe: BrowserDescriber = request.app.state.describe_browsers
    threads = request.app.state.rt.singleton(WorkThreadPool)
    named = await threads.run(describe, [browser.agent for browser in browsers])
    current_id = actor.session.id if actor.session else None
    found = []
    for browser, (name, system) in zip(browsers, named, strict=True):
        both = gettext("{browser} on {system}", browser=name or "", system=system or "")
        agent = both if name and system else name or system or browser.agent
        shown = SessionOut.model_validate(browser)
        found.append(shown.model_copy(update={"current": browser.id == current_id, "agent": agent}))
    return found
