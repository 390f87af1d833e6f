"""The check of a destination while it is typed: the page, links to it, and warnings."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from refract.core.errors import RefractError
from refract.core.extraction.pool import ExtractionPool
from refract.core.net import FetchError, PageFetcher
from refract.core.net.metadata import PageMetadata, fetch_metadata
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.core.urls import complete_url
from refract.identity.dependencies import WriteCaller
from refract.identity.responses import render_fragment
from refract.limits.shared_limits import SharedLimit
from refract.links import queries
from refract.links.enums import FlagReason
from refract.links.pages.editor import LinkQueryText
from refract.links.queries.cards import choose_text
from refract.links.safety.service import CheckedDestination, check_destinations
from refract.links.service.new_links import digest
from refract.names.enums import NameTarget
from refract.names.queries import list_names
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()
PREVIEWS_PER_MINUTE = 30
FETCH_TIMEOUT_SECONDS = 4.0
MAX_EXISTING = 3


class DestinationPreviewer:
    """Fetches pages for previews. Limited per user, because each is a request to another host."""

    def __init__(self, rt: Runtime) -> None:
        self.fetcher = PageFetcher.from_settings(rt.settings)
        self.pool = rt.singleton(ExtractionPool)
        self.limit = SharedLimit(
            rt, "look", PREVIEWS_PER_MINUTE, per=Phrase("per minute for previews")
        )


@router.get("/app/links/look")
async def preview_destination(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    destination: LinkQueryText = "",
    link: Annotated[Id | None, Query()] = None,
) -> Response:
    """Check a destination that is being typed, for a new link or an existing one."""
    typed = complete_url(destination.strip())
    context: dict[str, Any] = {"problem": None, "page": None, "host": "", "warnings": []}
    if "://" in typed:  # the rest is still being typed
        await rt.singleton(DestinationPreviewer).limit.charge(str(actor.user.id))
        (found,) = await check_destinations(rt, [typed])
        context |= (
            {"problem": translate_error(found)}
            if isinstance(found, RefractError)
            else await _describe_destination(rt, found, actor.user.id, link)
        )
    return render_fragment(request, actor, "links/_destination_check.html", **context)


async def _describe_destination(
    rt: Runtime, found: CheckedDestination, user_id: int, link_id: int | None
) -> dict[str, Any]:
    """Return what is shown of a destination: its page, the user's links to it, and warnings."""
    existing = await _find_existing(rt, found, user_id, link_id)
    return {
        "host": found.host,
        "warnings": _list_warnings(found),
        "existing": existing[:MAX_EXISTING],
        "more_existing": max(0, len(existing) - MAX_EXISTING),
        "page": None if found.template else await _fetch_page(rt, found.href, user_id),
    }


def _list_warnings(found: CheckedDestination) -> list[str]:
    warnings = []
    if found.unchecked:
        warnings.append(
            gettext(
                "Couldn’t run a safety check; we’ll retry. "
                "Until then, visitors see a preview first."
            )
        )
    if found.flag_reason is FlagReason.LOOKALIKE:
        warnings.append(
            gettext(
                "The host {host} mixes letters from several alphabets, so it may imitate another "
                "site. Visitors see a preview first.",
                host=found.host,
            )
        )
    if found.href.startswith("http://"):
        warnings.append(gettext("This URL uses HTTP and isn’t encrypted."))
    return warnings


async def _find_existing(
    rt: Runtime, found: CheckedDestination, user_id: int, link_id: int | None
) -> list[dict[str, str]]:
    """Return the user's other live links to the same destination."""
    async with rt.db.read() as session:
        links = await queries.find_live_links(
            session, user_id, {digest(found.href)}, rt.clock.now()
        )
        others = [link for link in links if link.id != link_id]
        names = await list_names(session, NameTarget.LINK, [link.id for link in others])
    return [
        {
            "name": choose_text(link, names[link.id]),
            "href": f"/app/links/{link.id}",
        }
        for link in others
    ]


async def _fetch_page(rt: Runtime, href: str, user_id: int) -> PageMetadata | None:
    """Return the metadata of a page, or None if it cannot be fetched."""
    previewer = rt.singleton(DestinationPreviewer)
    with suppress(FetchError, TimeoutError):
        # Waiting for the extraction process is included.
        async with asyncio.timeout(FETCH_TIMEOUT_SECONDS):
            return await fetch_metadata(
                previewer.fetcher,
                previewer.pool,
                href,
                owner=str(user_id),
                budget=FETCH_TIMEOUT_SECONDS,
            )
    return None
