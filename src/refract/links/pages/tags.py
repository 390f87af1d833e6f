"""The page of shared tags with their counts. Administrators rename and recolour them in place."""

from typing import Annotated

from fastapi import Form, Request
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict, Invalid
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import AdminCaller, ReadCaller
from refract.links import queries
from refract.links.dependencies import to_link_caller
from refract.tags import service
from refract.tags.errors import TagNotFound
from refract.tags.models import TagScope
from refract.tags.pages import (
    TagFormError,
    TagPageFilter,
    TagPageFilterQuery,
    load_tags,
    render_tags,
)
from refract.tags.queries import find_tags_by_id
from refract.web import flash
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()
PATH = "/app/tags"


@router.get("/app/tags")
async def tags_page(
    request: Request, actor: ReadCaller, rt: Rt, filters: TagPageFilterQuery
) -> Response:
    """List the tags of links that the caller may see."""
    return await _render_page(request, actor, rt, filters)


@router.post("/app/tags/{tag_id}")
async def change_tag(
    tag_id: Id,
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    name: Annotated[str, Form()] = "",
    color: Annotated[str, Form()] = "",
) -> Response:
    """Rename or recolour a shared tag."""
    try:
        async with rt.db.write() as session:
            tag = (await find_tags_by_id(session, [tag_id])).get(tag_id)
            if tag is None or tag.scope != TagScope.SHARED:
                raise TagNotFound
            await service.change_shared_tag(
                session,
                tag,
                by=actor.user.id,
                at=rt.clock.now(),
                name=name or None,
                color=color or None,
            )
    except (Conflict, Invalid) as exc:
        return await _render_page(
            request,
            actor,
            rt,
            TagPageFilter(),
            status=exc.status,
            wrong=(str(tag_id), name, translate_error(exc)),
        )
    response = RedirectResponse(PATH, 303)
    flash.add(response, rt, gettext("Saved “{name}”", name=name) if name else gettext("Saved"))
    return response


async def _render_page(
    request: Request,
    actor: Caller,
    rt: Runtime,
    filters: TagPageFilter,
    *,
    status: int = 200,
    wrong: TagFormError | None = None,
) -> Response:
    async with rt.db.read() as session:
        page = await load_tags(
            session,
            rt,
            queries.is_visible_tag(to_link_caller(actor)),
            [actor.user.id, actor.is_admin],
            filters,
        )
    return render_tags(
        request, actor, PATH, page, filters, status=status, may_change=actor.is_admin, wrong=wrong
    )
