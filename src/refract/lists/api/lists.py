"""API of lists."""

from typing import Annotated

from fastapi import Path, Query, Request, Response

from refract.core.errors import NothingToUndo
from refract.core.pagination import CursorCodec
from refract.core.schemas import Id
from refract.core.threads import WorkThreadPool
from refract.domains.errors import DomainDisabled, DomainNotAllowed, DomainNotFound
from refract.domains.hosts import to_other_host
from refract.domains.models import MAX_HOST_LENGTH
from refract.identity.dependencies import WriteCaller
from refract.limits.errors import RateLimited
from refract.limits.shared_limits import MissLimit
from refract.links.dependencies import Space
from refract.lists import queries, service
from refract.lists.dependencies import (
    begin_edition,
    build_list_out,
    choose_name,
    publish_draft,
    resolve_list_entries,
    start_list,
)
from refract.lists.draft_owners import ReadListClient, WriteListClient, set_creator_cookie
from refract.lists.errors import (
    AccountRequiredForName,
    AccountRequiredToPublish,
    EmptyList,
    ListImmutable,
    ListNotFound,
    ListNotPublished,
    ListUnavailable,
    RemovedByAdmin,
    SensitiveName,
    SlugLocked,
)
from refract.lists.models import ListStatus
from refract.lists.presentation import build_actions, build_public_list, build_summary
from refract.lists.public_pages import robots_headers
from refract.lists.schemas import (
    ClaimResult,
    ListActions,
    ListCreate,
    ListOut,
    ListPatch,
    ListsPage,
    ListTransfer,
    PublicList,
    PublishIn,
    SlugIn,
)
from refract.names.errors import InvalidSlug, SlugReserved, SlugTaken
from refract.teams.errors import NotTeamManager, TeamNotFound
from refract.web.dependencies import (
    DEFAULT_PAGE_SIZE,
    CursorParam,
    IfMatchHeader,
    LimitParam,
    Rt,
    api_router,
    make_etag,
    parse_if_match,
)
from refract.web.networks import client_network
from refract.web.problems import problems
from refract.web.routing import large_response

router = api_router("/lists", "lists")
_BAD_SLUG = (InvalidSlug, SlugReserved, SlugTaken, AccountRequiredForName, SensitiveName)


@router.post(
    "",
    status_code=201,
    responses=problems(DomainNotFound, DomainNotAllowed, DomainDisabled, TeamNotFound),
)
async def create_list(
    client: WriteListClient, rt: Rt, space: Space, response: Response, new: ListCreate | None = None
) -> ListOut:
    """Create a list.

    Without an account, where that is enabled, the response sets a cookie, and only that cookie
    gives access to the draft.
    """
    async with rt.db.write() as session:
        found = await start_list(session, rt, space, client, new or ListCreate())
        out = await build_list_out(session, rt, client, found.id)
    set_creator_cookie(response, rt, client)
    response.headers["ETag"] = make_etag(out.version)
    response.headers["Location"] = f"/api/v1/lists/{out.id}"
    return out


@router.get("")
async def list_lists(
    client: ReadListClient,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    status: Annotated[ListStatus | None, Query(description="Omit for both.")] = None,
    q: Annotated[
        str | None,
        Query(max_length=200, description="Words that title, name or description must contain."),
    ] = None,
    team: Annotated[
        str | None,
        Query(max_length=50, description="Only lists that the team with this handle owns."),
    ] = None,
) -> ListsPage:
    """List your lists and those of your teams, newest first.

    Without an account, those of the creator cookie.
    """
    async with rt.db.read() as session:
        page = await queries.load_lists_page(
            session,
            CursorCodec(rt.secret),
            client.caller,
            limit=limit,
            cursor=cursor,
            status=status,
            q=q,
            team=team,
        )
    items = [
        build_summary(found, count, views, rt.settings.public_url)
        for found, count, views in page.items
    ]
    return ListsPage(items=items, next_cursor=page.next_cursor)


@router.post("/claim")
async def claim_lists(actor: WriteCaller, client: WriteListClient, rt: Rt) -> ClaimResult:
    """Add the lists of the creator cookie to your account. The cookie then opens none of them."""
    async with rt.db.write() as session:
        creator = client.caller.creator
        ids = await service.claim_lists(session, actor.user.id, creator) if creator else []
        return ClaimResult(claimed=len(ids), list_ids=ids)


@router.get("/{list_id}", responses=problems(ListNotFound))
async def read_list(list_id: Id, client: ReadListClient, rt: Rt, response: Response) -> ListOut:
    """Get a list with its entries."""
    async with rt.db.read() as session:
        out = await build_list_out(session, rt, client, list_id)
    response.headers["ETag"] = make_etag(out.version)
    return out


@router.patch("/{list_id}", responses=problems(ListNotFound, ListImmutable))
async def change_list(
    list_id: Id,
    changes: ListPatch,
    client: WriteListClient,
    rt: Rt,
    response: Response,
    if_match: IfMatchHeader = None,
) -> ListOut:
    """Update a draft's title, description or palette. Omitted fields are unchanged.

    With If-Match the update only applies to that version.
    """
    version = parse_if_match(if_match)
    async with rt.db.write() as session:
        await service.edit_list(
            session, client.caller, list_id, changes, rt.clock.now(), version=version
        )
        out = await build_list_out(session, rt, client, list_id)
    response.headers["ETag"] = make_etag(out.version)
    return out


@router.post("/{list_id}/transfer", responses=problems(ListNotFound, NotTeamManager, TeamNotFound))
async def transfer_list(
    list_id: Id, heir: ListTransfer, _actor: WriteCaller, client: WriteListClient, rt: Rt
) -> ListOut:
    """Make one of your teams the owner of a list and its editions, or take it over from a team.

    Members of a team can edit its lists. Only managers can transfer them.
    """
    async with rt.db.write() as session:
        await service.transfer_list(session, client.caller, list_id, heir.team, rt.clock.now())
        return await build_list_out(session, rt, client, list_id)


@router.delete("/{list_id}", status_code=204, responses=problems(ListNotFound))
async def delete_list(list_id: Id, client: WriteListClient, rt: Rt) -> Response:
    """Delete a list. For 24 hours its name stays reserved and the deletion can be undone."""
    async with rt.db.write() as session:
        await service.delete_list(session, rt.ids, client.caller, list_id, rt.clock.now())
    return Response(status_code=204)


@router.post(
    "/{list_id}/undo",
    responses=problems(ListNotFound, NothingToUndo, RemovedByAdmin, SlugTaken),
)
@large_response
async def undo_list_deletion(list_id: Id, client: WriteListClient, rt: Rt, space: Space) -> ListOut:
    """Restore a list deleted in the last 24 hours."""
    async with rt.db.write() as session:
        await service.undo_delete(session, space, client.caller, list_id)
        return await build_list_out(session, rt, client, list_id)


@router.post(
    "/{list_id}/release",
    status_code=204,
    responses=problems(ListNotFound, NothingToUndo, RemovedByAdmin),
)
async def release_list_name(list_id: Id, client: WriteListClient, rt: Rt, space: Space) -> Response:
    """Release the name of a deleted list now, instead of 24 hours after its deletion."""
    async with rt.db.write() as session:
        await service.release_name(session, space, client.caller, list_id)
    return Response(status_code=204)


@router.get("/{list_id}/actions", responses=problems(ListNotFound))
async def list_actions(list_id: Id, client: ReadListClient, rt: Rt) -> ListActions:
    """List when a list and its editions were published and deleted, within the last 90 days."""
    async with rt.db.read() as session:
        return build_actions(await queries.list_actions(session, client.caller, list_id))


@router.post(
    "/{list_id}/slug", responses=problems(*_BAD_SLUG, ListNotFound, ListImmutable, SlugLocked)
)
@large_response
async def set_list_name(
    list_id: Id, body: SlugIn, client: WriteListClient, rt: Rt, space: Space
) -> ListOut:
    """Set the name for a draft. It is not reserved before the draft is published."""
    async with rt.db.write() as session:
        await choose_name(session, rt, space, client, list_id, body.slug)
        return await build_list_out(session, rt, client, list_id)


@router.post(
    "/{list_id}/publish",
    responses=problems(
        *_BAD_SLUG, EmptyList, ListNotFound, ListImmutable, SlugLocked, AccountRequiredToPublish
    ),
)
@large_response
async def publish_list(
    list_id: Id, client: WriteListClient, rt: Rt, space: Space, body: PublishIn | None = None
) -> ListOut:
    """Publish a draft under its name, or a generated one.

    This can't be undone: a published list can be replaced by a new edition, or deleted.
    """
    async with rt.db.write() as session:
        if body is not None and body.slug is not None:
            await choose_name(session, rt, space, client, list_id, body.slug)
        await publish_draft(session, rt, space, client, list_id)
        return await build_list_out(session, rt, client, list_id)


@router.post(
    "/{list_id}/editions",
    status_code=201,
    responses=problems(ListNotFound, ListNotPublished)
    | {200: {"model": ListOut, "description": "The draft already existed."}},
)
@large_response
async def create_list_edition(
    list_id: Id, client: WriteListClient, rt: Rt, space: Space, response: Response
) -> ListOut:
    """Create a draft of the next edition: a copy that takes over the name when it is published."""
    async with rt.db.write() as session:
        draft, made = await begin_edition(session, rt, space, client, list_id)
        out = await build_list_out(session, rt, client, draft.id)
    response.status_code = 201 if made else 200
    response.headers["Location"] = f"/api/v1/lists/{out.id}"
    return out


# Published lists.

public_router = api_router("/public/lists", "lists")


@public_router.get("/{slug}", responses=problems(ListNotFound, ListUnavailable, RateLimited))
async def read_public_list(
    slug: Annotated[str, Path(max_length=200)],
    request: Request,
    rt: Rt,
    response: Response,
    edition: Annotated[
        int | None, Query(ge=1, le=1_000_000, description="An older edition. Omit for the latest.")
    ] = None,
    domain: Annotated[
        str | None,
        Query(
            max_length=MAX_HOST_LENGTH,
            description="The host of the domain of the name. Omitted: the default domain.",
        ),
    ] = None,
) -> PublicList:
    """Get a published list by its name. No account needed."""
    host = to_other_host(rt.settings.public_url, domain)
    async with rt.db.read() as session:
        found = await queries.find_published_edition(session, slug, edition, host)
        if found is None:
            await rt.singleton(MissLimit).charge_network(client_network(request, rt))
            raise ListNotFound
        if found.details.link_list.on_hold:
            raise ListUnavailable
        shown = await resolve_list_entries(
            session, rt, found.details.link_list.id, found.details.epoch
        )
    response.headers.update(robots_headers(found.details.link_list))
    return await rt.singleton(WorkThreadPool).run(
        build_public_list,
        found.details,
        found.latest_edition,
        shown,
        rt.settings.public_url,
    )
