"""Admin page of all links."""

from typing import Annotated, Literal

from fastapi import Query, Request
from starlette.responses import Response

from refract.admin.pages.pagination import PER_PAGE, build_pager
from refract.core.pagination import CursorCodec
from refract.identity.dependencies import AdminCaller
from refract.identity.responses import render_response
from refract.links import queries
from refract.links.dependencies import who
from refract.links.models import LinkState
from refract.links.queries import LinkFilter, LinkSort, OwnerFilter
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.i18n import gettext

router = page_router()
PATH = "/app/admin/links"


@router.get(PATH)
async def links_page(
    request: Request,
    actor: AdminCaller,
    rt: Rt,
    cursor: CursorParam = None,
    q: Annotated[str, Query(max_length=200)] = "",
    status: LinkState | Literal[""] = "",
) -> Response:
    """Show links of all users, newest first; without a status, all but deleted ones."""
    filters = LinkFilter(OwnerFilter.ALL, status or None, None, q or None, LinkSort.CREATED)
    now = rt.clock.now()
    async with rt.db.read() as session:
        page = await queries.load_links_page(
            session,
            CursorCodec(rt.secret),
            who(actor),
            filters,
            now,
            limit=PER_PAGE,
            cursor=cursor,
        )
        cards = await queries.load_cards(session, page.items)
    return render_response(
        request,
        actor,
        "admin/links.html",
        page_title=gettext("Links"),
        here="links",
        links=[card.to_schema(rt.settings.public_url, now) for card in cards],
        q=q,
        status=status,
        **build_pager(PATH, {"q": q, "status": status}, cursor, page.next_cursor),
    )
