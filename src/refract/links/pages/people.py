"""Small forms on the page of a link: names, owners, viewers, transfer, restoring a version."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

from fastapi import Form, Path, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Forbidden, Invalid, NotFound
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.domains.hosts import to_other_host
from refract.domains.models import MAX_HOST_LENGTH
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.limits.shared_limits import AddressLimit
from refract.links import queries, service
from refract.links.access import LinkCaller
from refract.links.dependencies import (
    Space,
    charge_code_like_names,
    invite_or_assign_owner,
    to_link_caller,
)
from refract.links.enums import InvitedRole
from refract.links.errors import LinkNotFound
from refract.links.pages.detail import FORM_TABS, render_link
from refract.links.schemas import InvitationCreated, PersonIn
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, mark, ngettext, translate_error

router = page_router()
EmailFormField = Annotated[str, Form(max_length=255)]
DomainFormField = Annotated[str, Form(max_length=MAX_HOST_LENGTH)]
EmailAction = Callable[[WriteSession, LinkCaller, int, str, datetime], Awaitable[object]]
UserAction = Callable[[WriteSession, LinkCaller, int, int, datetime], Awaitable[object]]


@router.post("/app/links/{link_id}/names")
async def add_name(
    link_id: Id,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    name: Annotated[str, Form()] = "",
    domain: DomainFormField = "",
) -> Response:
    async def work() -> str:
        new_name = name.strip().removeprefix("/")
        host = to_other_host(rt.settings.public_url, domain)
        await charge_code_like_names(rt, actor, [new_name])
        async with rt.db.write() as session:
            await service.add_name(
                session, space, to_link_caller(actor), link_id, new_name, host=host
            )
        return gettext("Added /{name}", name=new_name)

    typed = {"name": name, "domain": domain}
    return await run_and_respond(request, actor, rt, link_id, work(), "name", typed)


@router.post("/app/links/{link_id}/names/{name:path}/release")
async def release_name(
    link_id: Id,
    name: str,
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
    domain: DomainFormField = "",
) -> Response:
    async def work() -> str:
        host = to_other_host(rt.settings.public_url, domain)
        async with rt.db.write() as session:
            await service.release_name(
                session, space, to_link_caller(actor), link_id, name, host=host
            )
        return gettext("Removed /{name}", name=name)

    return await run_and_respond(request, actor, rt, link_id, work(), "name", {})


@router.post("/app/links/{link_id}/owners")
async def add_owner(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, email: EmailFormField = ""
) -> Response:
    return await _invite_owner(
        request,
        actor,
        rt,
        link_id,
        email,
        InvitedRole.OWNER,
        "owner",
        mark("Added {email} as co-owner"),
    )


@router.post("/app/links/{link_id}/owners/{user_id}/remove")
async def remove_owner(
    link_id: Id, user_id: Id, request: Request, actor: WriteCaller, rt: Rt
) -> Response:
    # Someone who has just left cannot see the link any more.
    then = "/app/links" if user_id == actor.user.id and not actor.is_admin else None
    return await _remove_person(
        request,
        actor,
        rt,
        link_id,
        user_id,
        service.remove_owner,
        "owner",
        gettext("Removed co-owner"),
        then=then,
    )


@router.post("/app/links/{link_id}/shares")
async def share_link(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, email: EmailFormField = ""
) -> Response:
    return await _add_person(
        request,
        actor,
        rt,
        link_id,
        email,
        service.share_link,
        "share",
        mark("Shared with {email}"),
    )


@router.post("/app/links/{link_id}/shares/{user_id}/remove")
async def unshare_link(
    link_id: Id, user_id: Id, request: Request, actor: WriteCaller, rt: Rt
) -> Response:
    """Remove a viewer, or leave as one."""
    if user_id == actor.user.id and not actor.is_admin:
        then, message = "/app/links?owner=shared", gettext("Removed from your links")
    else:
        then, message = None, gettext("Removed viewer")
    return await _remove_person(
        request, actor, rt, link_id, user_id, service.unshare_link, "share", message, then=then
    )


@router.post("/app/links/{link_id}/transfer")
async def transfer_link(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, email: EmailFormField = ""
) -> Response:
    return await _invite_owner(
        request,
        actor,
        rt,
        link_id,
        email,
        InvitedRole.PRIMARY,
        "transfer",
        mark("Transferred to {email}"),
    )


@router.post("/app/links/{link_id}/history/{version}/revert")
async def revert_link(
    link_id: Id,
    version: Annotated[int, Path(ge=1, le=2**31 - 1)],
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    space: Space,
) -> Response:
    async def work() -> str:
        async with rt.db.read() as session:
            await queries.view_link(session, to_link_caller(actor), link_id, AccessRight.EDIT)
            snapshot = (await queries.get_version(session, link_id, version)).snapshot
        vetted = await service.check_version(rt, snapshot)
        async with rt.db.write() as session:
            await service.revert_link(
                session, space, to_link_caller(actor), link_id, version, vetted
            )
        return gettext("Restored version {version}", version=version)

    return await run_and_respond(
        request, actor, rt, link_id, work(), "step", {}, undo=f"/app/links/{link_id}/undo"
    )


@router.post("/app/links/{link_id}/invitations/{invitation_id}/withdraw")
async def withdraw_invitation(
    link_id: Id, invitation_id: Id, request: Request, actor: WriteCaller, rt: Rt
) -> Response:
    return await _remove_person(
        request,
        actor,
        rt,
        link_id,
        invitation_id,
        service.withdraw_invitation,
        "owner",
        gettext("Withdrew the invitation"),
    )


async def _invite_owner(  # noqa: PLR0913, PLR0917 - the request, the person and the message
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    email: str,
    role: InvitedRole,
    field: str,
    done: str,
) -> Response:
    """Invite someone to own a link. For an administrator, on another's link, it happens at once."""

    async def work() -> str:
        person = PersonIn(email=email)
        offered = await invite_or_assign_owner(rt, actor, link_id, person.email, role)
        if not isinstance(offered, InvitationCreated):
            return gettext(done, email=person.email)
        return ngettext(
            "Invited {email}. They have {n} day to accept.",
            "Invited {email}. They have {n} days to accept.",
            service.INVITATION_LIFETIME.days,
            email=person.email,
        )

    return await run_and_respond(request, actor, rt, link_id, work(), field, {field: email})


async def _add_person(  # noqa: PLR0913, PLR0917 - the same
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    email: str,
    step: EmailAction,
    field: str,
    done: str,
) -> Response:
    """Give a person, named by email, access to a link. A rejected email stays in the field."""

    async def work() -> str:
        person = PersonIn(email=email)
        await rt.singleton(AddressLimit).charge_user(actor.user.id, is_admin=actor.is_admin)
        async with rt.db.write() as session:
            await step(session, to_link_caller(actor), link_id, person.email, rt.clock.now())
        return gettext(done, email=person.email)

    return await run_and_respond(request, actor, rt, link_id, work(), field, {field: email})


async def _remove_person(  # noqa: PLR0913, PLR0917 - the same
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    user_id: int,
    step: UserAction,
    field: str,
    message: str,
    *,
    then: str | None = None,
) -> Response:
    """Take away a person's access to a link."""

    async def work() -> str:
        async with rt.db.write() as session:
            await step(session, to_link_caller(actor), link_id, user_id, rt.clock.now())
        return message

    return await run_and_respond(request, actor, rt, link_id, work(), field, {}, then=then)


async def run_and_respond(  # noqa: PLR0913 - the work, and the page that follows it
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    work: Awaitable[str],
    field: str,
    typed: dict[str, Any],
    *,
    undo: str | None = None,
    then: str | None = None,
) -> Response:
    """Run the work and show its message, or show the page with the typed values and the error.

    Errors about access to the link itself are raised, so that they reveal nothing about it.
    """
    try:
        message = await work
    except ValidationError:
        return await render_link(
            request,
            actor,
            rt,
            link_id,
            status=422,
            values=typed,
            errors={field: gettext("Enter a valid email address.")},
        )
    except (Conflict, Forbidden, Invalid, NotFound) as exc:
        if isinstance(exc, LinkNotFound | Forbidden):
            raise
        return await render_link(
            request,
            actor,
            rt,
            link_id,
            status=exc.status,
            values=typed,
            errors={field: translate_error(exc)},
        )
    response = RedirectResponse(
        then or f"/app/links/{link_id}?tab={FORM_TABS.get(field, 'history')}", 303
    )
    flash.add(response, rt, message, undo=undo)
    return response
