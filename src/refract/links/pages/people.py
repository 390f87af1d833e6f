"""Names, owners, shares, transfer and the way back to an earlier version: small forms on a link's page."""

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
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller
from refract.identity.dependencies import WriteCaller
from refract.links import queries, service
from refract.links.access import LinkCaller
from refract.links.dependencies import Space, charge_code_like_names, offer, who
from refract.links.errors import LinkNotFound
from refract.links.models import InvitedRole
from refract.links.pages.detail import render_link
from refract.links.safety.service import check_destination
from refract.links.schemas import InvitationCreated, PersonIn
from refract.web import flash
from refract.web.dependencies import Rt, page_router

router = page_router()
EmailFormField = Annotated[str, Form(max_length=255)]
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
) -> Response:
    async def work() -> str:
        wanted = name.strip().removeprefix("/")
        await charge_code_like_names(rt, actor, [wanted])
        async with rt.db.write() as session:
            await service.add_name(session, space, who(actor), link_id, wanted)
        return f"/{wanted} leads here too."

    return await _run_and_respond(request, actor, rt, link_id, work(), "name", {"name": name})


@router.post("/app/links/{link_id}/names/{name}/release")
async def release_name(
    link_id: Id, name: str, request: Request, actor: WriteCaller, rt: Rt, space: Space
) -> Response:
    async def work() -> str:
        async with rt.db.write() as session:
            await service.release_name(session, space, who(actor), link_id, name)
        return f"/{name} is free again."

    return await _run_and_respond(request, actor, rt, link_id, work(), "name", {})


@router.post("/app/links/{link_id}/owners")
async def add_owner(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, email: EmailFormField = ""
) -> Response:
    return await _invite_owner(
        request, actor, rt, link_id, email, InvitedRole.OWNER, "owner", "{email} owns it too."
    )


@router.post("/app/links/{link_id}/owners/{user_id}/remove")
async def remove_owner(
    link_id: Id, user_id: Id, request: Request, actor: WriteCaller, rt: Rt
) -> Response:
    gone = (
        user_id == actor.user.id and not actor.is_admin
    )  # nobody can look at what they have just given away
    then = "/app/links" if gone else None
    return await _remove_person(
        request,
        actor,
        rt,
        link_id,
        user_id,
        service.remove_owner,
        "owner",
        "One owner less.",
        then=then,
    )


@router.post("/app/links/{link_id}/shares")
async def share_link(
    link_id: Id, request: Request, actor: WriteCaller, rt: Rt, email: EmailFormField = ""
) -> Response:
    return await _add_person(
        request, actor, rt, link_id, email, service.share_link, "share", "Shared with {email}."
    )


@router.post("/app/links/{link_id}/shares/{user_id}/remove")
async def unshare_link(
    link_id: Id, user_id: Id, request: Request, actor: WriteCaller, rt: Rt
) -> Response:
    """Stop sharing; whom it is shared with may leave."""
    left = (
        user_id == actor.user.id and not actor.is_admin
    )  # nobody can look at what they have just left
    then, said = (
        ("/app/links?owner=shared", "Removed from your list.")
        if left
        else (None, "No longer shared.")
    )
    return await _remove_person(
        request, actor, rt, link_id, user_id, service.unshare_link, "share", said, then=then
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
        "{email} is the primary owner now.",
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
            await queries.view_link(session, who(actor), link_id, AccessRight.EDIT)
            kept = (await queries.get_version(session, link_id, version)).snapshot
        vetted = await check_destination(rt, kept["destination"])
        async with rt.db.write() as session:
            await service.revert_link(session, space, who(actor), link_id, version, vetted)
        return f"Back to version {version}."

    return await _run_and_respond(
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
        "Invitation withdrawn.",
    )


async def _invite_owner(  # noqa: PLR0913, PLR0917 - who offers what to whom, and what is said of it
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    email: str,
    role: InvitedRole,
    field: str,
    done: str,
) -> Response:
    """Invite somebody to own a link; what an administrator does to somebody else's is done at once."""

    async def work() -> str:
        person = PersonIn(email=email)
        offered = await offer(rt, actor, link_id, person.email, role)
        invited = (
            f"Invited {person.email}. They have {service.INVITATION_LIFETIME.days} days to accept."
        )
        return (
            invited if isinstance(offered, InvitationCreated) else done.format(email=person.email)
        )

    return await _run_and_respond(request, actor, rt, link_id, work(), field, {field: email})


async def _add_person(  # noqa: PLR0913, PLR0917 - who does what with whom, and what is said of it
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    email: str,
    step: EmailAction,
    field: str,
    said: str,
) -> Response:
    """Give somebody a part in a link. They are known by their email address, which stays in the field when it is not right."""

    async def work() -> str:
        person = PersonIn(email=email)
        await rt.singleton(service.AddressLimit).charge_caller(who(actor))
        async with rt.db.write() as session:
            await step(session, who(actor), link_id, person.email, rt.clock.now())
        return said.format(email=person.email)

    return await _run_and_respond(request, actor, rt, link_id, work(), field, {field: email})


async def _remove_person(  # noqa: PLR0913, PLR0917 - the same
    request: Request,
    actor: Caller,
    rt: Runtime,
    link_id: int,
    user_id: int,
    step: UserAction,
    field: str,
    said: str,
    *,
    then: str | None = None,
) -> Response:
    """Take somebody's part in a link away."""

    async def work() -> str:
        async with rt.db.write() as session:
            await step(session, who(actor), link_id, user_id, rt.clock.now())
        return said

    return await _run_and_respond(request, actor, rt, link_id, work(), field, {}, then=then)


async def _run_and_respond(  # noqa: PLR0913 - what was to be done, and all that the page after it says
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
    """Do it and say so, or show the page with what was typed and what is wrong with it. Who may not see the link learns nothing."""
    try:
        said = await work
    except ValidationError:
        return await render_link(
            request,
            actor,
            rt,
            link_id,
            status=422,
            values=typed,
            errors={field: "Write a whole email address."},
        )
    except (Conflict, Forbidden, Invalid, NotFound) as exc:
        if isinstance(
            exc, LinkNotFound | Forbidden
        ):  # it concerns the link, not what was typed about it
            raise
        return await render_link(
            request,
            actor,
            rt,
            link_id,
            status=exc.status,
            values=typed,
            errors={field: exc.message},
        )
    response = RedirectResponse(then or f"/app/links/{link_id}", 303)
    flash.add(response, rt, said, undo=undo)
    return response
