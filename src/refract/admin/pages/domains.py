"""Admin pages of domains: all of them, and one with its settings."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import Form, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid, NotFound, RefractError
from refract.core.pagination import MAX_LIMIT, CursorCodec
from refract.core.runtime import Runtime
from refract.domains import queries, service
from refract.domains.dependencies import Hooks, to_domain_caller
from refract.domains.errors import DomainNotFound
from refract.domains.hooks import DomainHooks
from refract.domains.hosts import get_default_host, parse_domain_host
from refract.domains.models import DomainCreators, DomainState
from refract.domains.schemas import DomainCreate, DomainPatch
from refract.identity.authentication import Caller
from refract.identity.dependencies import AdminCaller
from refract.identity.responses import render_response
from refract.teams.models import Team
from refract.teams.queries import TeamCaller, load_teams_page
from refract.web import flash
from refract.web.dependencies import PER_PAGE, CursorParam, Rt, build_pager, page_router
from refract.web.i18n import LazyText, gettext, lazy_gettext, translate, translate_error
from refract.web.problems import list_field_errors

router = page_router()
PATH = "/app/admin/domains"
CREATOR_LABELS = {
    DomainCreators.EVERYONE: lazy_gettext("Everyone signed in"),
    DomainCreators.ADMINISTRATORS: lazy_gettext("Administrators only"),
}
STATUS_LABELS = {
    302: lazy_gettext("302 Temporary"),
    307: lazy_gettext("307 Temporary, keeps method"),
    301: lazy_gettext("301 Permanent"),
    308: lazy_gettext("308 Permanent, keeps method"),
}
FormText = Annotated[str, Form(max_length=10_000)]


@router.get(PATH)
async def domains_page(
    request: Request, actor: AdminCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    """List the default domain and all others, with what is on them."""
    return await _render_domains(request, actor, rt, cursor=cursor)


@router.post(PATH)
async def create_domain(
    request: Request, actor: AdminCaller, rt: Rt, hooks: Hooks, host: FormText = ""
) -> Response:
    """Create a domain, and show what to do next."""
    try:
        name = parse_domain_host(host, rt.settings.public_url)
        async with rt.db.write() as session:
            await service.create_domain(
                session, hooks, actor.user.id, name, DomainCreate(host=name), rt.clock.now()
            )
    except (Conflict, Invalid) as exc:
        return await _render_domains(
            request,
            actor,
            rt,
            status=exc.status,
            values={"host": host},
            errors={"host": translate_error(exc)},
        )
    response = RedirectResponse(f"{PATH}/{name}", 303)
    flash.add(response, rt, gettext("Added {host}", host=name))
    return response


@router.get(PATH + "/{host}")
async def domain_page(host: str, request: Request, actor: AdminCaller, rt: Rt) -> Response:
    """Show a domain with its settings, and how to point it here."""
    return await _render_domain(request, actor, rt, host)


@router.post(PATH + "/{host}")
async def change_domain(
    host: str, request: Request, actor: AdminCaller, rt: Rt, hooks: Hooks
) -> Response:
    """Change the settings of a domain."""
    form = await request.form()
    values = {name: str(value) for name, value in form.items() if name != "csrf"}

    async def work() -> str:
        changes = await service.check_fallbacks(rt, hooks, _parse_settings(values))
        await _change(rt, hooks, actor, host, changes)
        return gettext("Saved the domain")

    return await _run_and_respond(request, actor, rt, host, work, values)


@router.post(PATH + "/{host}/disable")
async def disable_domain(
    host: str, request: Request, actor: AdminCaller, rt: Rt, hooks: Hooks
) -> Response:
    """Stop a domain. Its links are kept."""

    async def work() -> str:
        await _change(rt, hooks, actor, host, DomainPatch(state=DomainState.DISABLED))
        return gettext("Disabled {host}", host=host)

    return await _run_and_respond(request, actor, rt, host, work, {})


@router.post(PATH + "/{host}/enable")
async def enable_domain(
    host: str, request: Request, actor: AdminCaller, rt: Rt, hooks: Hooks
) -> Response:
    """Start a domain again."""

    async def work() -> str:
        await _change(rt, hooks, actor, host, DomainPatch(state=DomainState.ACTIVE))
        return gettext("Enabled {host}", host=host)

    return await _run_and_respond(request, actor, rt, host, work, {})


@router.post(PATH + "/{host}/delete")
async def delete_domain(
    host: str, request: Request, actor: AdminCaller, rt: Rt, hooks: Hooks
) -> Response:
    """Delete a domain that nothing is on."""

    async def work() -> str:
        async with rt.db.write() as session:
            await service.delete_domain(session, hooks, actor.user.id, host, rt.clock.now())
        return gettext("Deleted {host}", host=host)

    return await _run_and_respond(request, actor, rt, host, work, {}, field="delete", then=PATH)


def _parse_settings(values: Mapping[str, str]) -> DomainPatch:
    """Return the settings in a form. A field that is missing from it stays as it is."""
    given: dict[str, Any] = {
        name: values[name].strip() or None
        for name in ("title", "root_destination", "unknown_destination", "gone_destination")
        if name in values
    }
    if values.get("default_redirect_status", "").isdecimal():
        given["default_redirect_status"] = int(values["default_redirect_status"])
    if values.get("creators"):
        given["creators"], _, team = values["creators"].partition(":")
        given["team"] = team or None
    return DomainPatch.model_validate(given)


def _get_creators_value(creators: str, team: str | None) -> str:
    """Return who may create as the form's choice says it: a team with its handle."""
    return f"{creators}:{team}" if team else creators


def _list_creators(teams: Sequence[Team]) -> list[tuple[str, str | LazyText]]:
    """Return the choices of who may create: everyone, administrators, and each team."""
    named = [
        (
            _get_creators_value(DomainCreators.TEAM, team.slug),
            gettext("Team {name}", name=team.name),
        )
        for team in teams
    ]
    return [*((who.value, label) for who, label in CREATOR_LABELS.items()), *named]


async def _change(
    rt: Runtime, hooks: DomainHooks, actor: Caller, host: str, changes: DomainPatch
) -> None:
    async with rt.db.write() as session:
        await service.change_domain(session, hooks, actor.user.id, host, changes, rt.clock.now())


async def _run_and_respond(  # noqa: PLR0913 - the work, and the page that follows it
    request: Request,
    actor: Caller,
    rt: Runtime,
    host: str,
    work: Callable[[], Awaitable[str]],
    typed: dict[str, str],
    *,
    field: str = "creators",
    then: str | None = None,
) -> Response:
    """Run the work and show its message, or show the page with the typed values and the error."""
    try:
        message = await work()
    except ValidationError as exc:
        errors = {
            error.field: translate(error.message) for error in list_field_errors(exc.errors())
        }
        return await _render_domain(
            request, actor, rt, host, status=422, values=typed, errors=errors
        )
    except (Conflict, Invalid, NotFound) as exc:
        if isinstance(exc, DomainNotFound):
            raise
        return await _render_domain(
            request, actor, rt, host, status=exc.status, values=typed, errors=_map(exc, field)
        )
    response = RedirectResponse(then or f"{PATH}/{host}", 303)
    flash.add(response, rt, message)
    return response


def _map(error: RefractError, field: str) -> dict[str, str]:
    """Return the message by the field of the form that it belongs to."""
    return {error.errors[0].field if error.errors else field: translate_error(error)}


async def _render_domains(
    request: Request,
    actor: Caller,
    rt: Runtime,
    *,
    cursor: str | None = None,
    status: int = 200,
    **context: Any,
) -> Response:
    async with rt.db.read() as session:
        page = await queries.load_domains_page(
            session, CursorCodec(rt.secret), to_domain_caller(actor), limit=PER_PAGE, cursor=cursor
        )
    public_url = rt.settings.public_url
    return render_response(
        request,
        actor,
        "admin/domains.html",
        status=status,
        page_title=gettext("Domains"),
        here="domains",
        default_host=get_default_host(public_url),
        has_base_url=rt.settings.base_url is not None,
        domains=[view.to_schema(public_url) for view in page.items],
        creators=CREATOR_LABELS,
        **context,
        **build_pager(PATH, {}, cursor, page.next_cursor),
    )


async def _render_domain(
    request: Request, actor: Caller, rt: Runtime, host: str, *, status: int = 200, **context: Any
) -> Response:
    caller = TeamCaller(actor.user.id, actor.is_admin)
    async with rt.db.read() as session:
        view = await queries.view_domain(session, to_domain_caller(actor), host)
        teams = await load_teams_page(
            session, CursorCodec(rt.secret), caller, limit=MAX_LIMIT, cursor=None, everyone=True
        )
    public_url = rt.settings.public_url
    return render_response(
        request,
        actor,
        "admin/domain.html",
        status=status,
        page_title=view.domain.host,
        here="domains",
        domain=view.to_schema(public_url),
        default_host=get_default_host(public_url),
        has_base_url=rt.settings.base_url is not None,
        creators=_list_creators([row.team for row in teams.items]),
        chosen_creators=_get_creators_value(view.domain.creators, view.team),
        statuses=[(str(number), label) for number, label in STATUS_LABELS.items()],
        **context,
    )
