"""Destinations that belong to a domain instead of a link."""

from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.links.enums import FlagReason
from refract.links.safety.errors import InvalidUrl
from refract.links.safety.service import check_destination


async def check_fallback(rt: Runtime, typed: str) -> str:
    """Return the URL to which a domain may redirect, or raise why it may not.

    It passes the checks of links. No preview can warn of it, so one that links are flagged for is
    refused; and no path fills placeholders.
    """
    checked = await check_destination(rt, typed)
    if checked.template is not None:
        raise InvalidUrl(reason=Phrase("Placeholders only work in links. Remove the braces."))
    if checked.flag_reason is FlagReason.LOOKALIKE:
        raise InvalidUrl(reason=Phrase("The host imitates another one. Choose another URL."))
    return checked.href
