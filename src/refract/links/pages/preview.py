"""The check of a destination while it is typed: the page's title, and warnings."""

import asyncio
from contextlib import suppress
from typing import Any

from fastapi import Request
from starlette.responses import Response

from refract.core.errors import RefractError
from refract.core.extraction.pool import ExtractionPool
from refract.core.net import FetchError, PageFetcher
from refract.core.net.metadata import fetch_metadata
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.identity.dependencies import WriteCaller
from refract.identity.responses import render_fragment
from refract.limits.service import SharedLimit
from refract.links.models import FlagReason
from refract.links.pages.editor import LinkQueryText
from refract.links.safety.service import CheckedDestination, check_destinations
from refract.web.dependencies import Rt, page_router
from refract.web.i18n import gettext, translate_error

router = page_router()
PREVIEWS_PER_MINUTE = 30
FETCH_TIMEOUT_SECONDS = 4.0


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
    request: Request, actor: WriteCaller, rt: Rt, destination: LinkQueryText = ""
) -> Response:
    """Check a destination that is being typed."""
    typed = destination.strip()
    context: dict[str, Any] = {"problem": None, "title": None, "warnings": []}
    if "://" in typed:  # the rest is still being typed
        await rt.singleton(DestinationPreviewer).limit.charge(str(actor.user.id))
        (found,) = await check_destinations(rt, [typed])
        context |= (
            {"problem": translate_error(found)}
            if isinstance(found, RefractError)
            else await _describe_destination(rt, found, actor.user.id)
        )
    return render_fragment(request, actor, "links/_destination_check.html", **context)


async def _describe_destination(
    rt: Runtime, found: CheckedDestination, user_id: int
) -> dict[str, Any]:
    """Return the title and warnings of a destination.

    A page that cannot be fetched has no title.
    """
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
    if found.template is not None:
        return {"title": None, "warnings": warnings}
    title = None
    with suppress(FetchError, TimeoutError):
        async with asyncio.timeout(
            FETCH_TIMEOUT_SECONDS
        ):  # waiting for the extraction process included
            previewer = rt.singleton(DestinationPreviewer)
            title = (
                await fetch_metadata(
                    previewer.fetcher,
                    previewer.pool,
                    found.href,
                    owner=str(user_id),
                    budget=FETCH_TIMEOUT_SECONDS,
                )
            ).title
    return {"title": title, "warnings": warnings}
