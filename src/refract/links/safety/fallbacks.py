"""URLs of a domain or a link to which visitors are sent when there is nothing to follow."""

from refract.core.errors import FieldError, RefractError
from refract.core.phrases import Phrase
from refract.core.runtime import Runtime
from refract.links.enums import FlagReason
from refract.links.safety.errors import InvalidUrl
from refract.links.safety.service import check_destination


async def check_fallback(rt: Runtime, typed: str, *, field: str | None = None) -> str:
    """Return the URL to which a domain or a link may redirect instead, or raise why it may not.

    The error names the `field` of the request.

    It passes the checks of links. No preview can warn of it, so one that links are flagged for is
    refused; and no path fills placeholders.
    """
    try:
        checked = await check_destination(rt, typed)
        if checked.template is not None:
            raise InvalidUrl(reason=Phrase("Placeholders only work in links. Remove the braces."))
        if checked.flag_reason is FlagReason.LOOKALIKE:
            raise InvalidUrl(reason=Phrase("The host imitates another one. Choose another URL."))
    except RefractError as exc:
        exc.errors = [FieldError(field, exc.message)] if field else exc.errors
        raise
    return checked.href
