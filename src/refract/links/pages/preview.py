"""What the form says about a destination while it is typed: the page's title, and what speaks against leading there."""

import asyncio
from contextlib import suppress
from typing import Any

from fastapi import Request
from starlette.responses import Response

from refract.core.errors import RefractError
from refract.core.extraction.pool import ExtractionPool
from refract.core.net import FetchError, PageFetcher
from refract.core.net.metadata import fetch_metadata
from refract.core.runtime import Runtime
from refract.identity.dependencies import WriteCaller
from refract.identity.responses import render_fragment
from refract.limits.service import SharedLimit
from refract.links.models import FlagReason
from refract.links.pages.editor import LinkQueryText
from refract.links.safety.service import CheckedDestination, check_destinations
from refract.web.dependencies import Rt, page_router

router = page_router()
PREVIEWS_PER_MINUTE = 30
FETCH_TIMEOUT_SECONDS = 4.0


class DestinationPreviewer:
    """How often each person has pages looked at: every look goes out to a foreign host."""

    def __init__(self, rt: Runtime) -> None:
        self.fetcher = PageFetcher.from_settings(rt.settings)
        self.pool = rt.singleton(ExtractionPool)
        self.limit = SharedLimit(rt, "look", PREVIEWS_PER_MINUTE, per="a minute")


@router.get("/app/links/look")
async def preview_destination(
    request: Request, actor: WriteCaller, rt: Rt, destination: LinkQueryText = ""
) -> Response:
    """A few words about a destination that somebody is typing."""
    typed = destination.strip()
    said: dict[str, Any] = {"problem": None, "title": None, "warnings": []}
    if "://" in typed:  # the rest is still being typed
        await rt.singleton(DestinationPreviewer).limit.charge(str(actor.user.id))
        (found,) = await check_destinations(rt, [typed])
        said |= (
            {"problem": found.message}
            if isinstance(found, RefractError)
            else await _describe_destination(rt, found, actor.user.id)
        )
    return render_fragment(request, actor, "links/_destination_check.html", **said)


async def _describe_destination(
    rt: Runtime, found: CheckedDestination, user_id: int
) -> dict[str, Any]:
    """One look, in a few seconds, through the one door to foreign pages. What cannot be read can be led to all the same."""
    warnings = []
    if found.unchecked:
        warnings.append(
            "The address could not be checked yet. Until it is, visitors see a preview first."
        )
    if found.flag_reason is FlagReason.LOOKALIKE:
        warnings.append(
            f"The host {found.host} mixes alphabets like an imitation. Visitors see a preview"
            " first."
        )
    if found.href.startswith("http://"):
        warnings.append("It is not encrypted: others on the way can read along.")
    if found.template is not None:
        return {"title": None, "warnings": warnings}
    title = None
    with suppress(FetchError, TimeoutError):
        async with asyncio.timeout(
            FETCH_TIMEOUT_SECONDS
        ):  # waiting for the extraction process included
            looks = rt.singleton(DestinationPreviewer)
            title = (
                await fetch_metadata(
                    looks.fetcher,
                    looks.pool,
                    found.href,
                    owner=str(user_id),
                    budget=FETCH_TIMEOUT_SECONDS,
                )
            ).title
    return {"title": title, "warnings": warnings}
