"""Checks of URLs that are added to a list: those of links, and our own short links are resolved.

Calls other services, so no transaction may be open.
"""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl, WebUrl, complete_url, normalize_url, parse_web_url
from refract.domains.hosts import show_host, to_other_host
from refract.limits.errors import RateLimited
from refract.limits.shared_limits import MissLimit
from refract.links.models import Link
from refract.links.queries import resolve_name
from refract.links.safety.errors import InvalidUrl, LinkLoop
from refract.links.safety.service import CheckedDestination, check_destinations
from refract.lists.draft_owners import ListClient
from refract.lists.presentation import can_follow, normalise_href
from refract.lists.schemas import MAX_URL_LENGTH
from refract.lists.service import CheckedAddress
from refract.names.service import check_code_guess
from refract.redirect.resolver import LinkView, parse_path


async def check_addresses(
    rt: Runtime, client: ListClient, typed: Sequence[str]
) -> list[CheckedAddress | RefractError]:
    """Return for each URL, in order, the checked address or the reason for refusing it."""
    parsed = [_parse_address(text) for text in typed]
    good = [index for index, address in enumerate(parsed) if isinstance(address, CheckedAddress)]
    verdicts = await check_destinations(
        rt, [address.href for address in parsed if isinstance(address, CheckedAddress)]
    )
    results: list[CheckedAddress | RefractError] = list(parsed)
    for index, verdict in zip(good, verdicts, strict=True):
        address = parsed[index]
        if isinstance(verdict, CheckedDestination) and isinstance(address, CheckedAddress):
            results[index] = replace(
                address,
                flag_reason=verdict.flag_reason,
                unchecked=verdict.unchecked,
                host=verdict.host,
            )
        elif isinstance(verdict, LinkLoop) and isinstance(address, CheckedAddress):
            results[index] = await _resolve_own_link(rt, client, address, verdict)
        elif isinstance(verdict, RefractError):
            results[index] = verdict
    return results


def _parse_address(text: str) -> CheckedAddress | RefractError:
    shown = complete_url(text.strip())
    try:
        url = parse_web_url(shown, limit=MAX_URL_LENGTH)
    except BadUrl as exc:
        return InvalidUrl(reason=str(exc), field="url")
    href = _escape_braces(url)
    return CheckedAddress(
        shown, href, url.host, normalize_url(parse_web_url(href, limit=len(href)))
    )


def _escape_braces(url: WebUrl) -> str:
    """Escape braces: they are placeholders in a link and mean nothing in a list."""
    return url.href.replace("{", "%7B").replace("}", "%7D")


async def _resolve_own_link(
    rt: Runtime, client: ListClient, address: CheckedAddress, refused: LinkLoop
) -> CheckedAddress | RefractError:
    """Resolve a short link of ours: the entry follows its destination, also after an edit.

    A missing link counts against the limit of misses, as it does when it is opened.
    """
    parts = urlsplit(address.href)
    host = to_other_host(rt.settings.public_url, parts.hostname)
    if parts.netloc != show_host(rt.settings.public_url, host):
        return refused
    wanted = parse_path(parts.path.encode())
    if wanted.view is not LinkView.FOLLOW or wanted.extra or parts.query:
        return refused
    misses, user_id = rt.singleton(MissLimit), client.caller.user_id
    try:
        check_code_guess(rt, wanted.name, client.network, user_id)
        async with rt.db.read() as session:
            found = await resolve_name(session, wanted.name, host)
            link: Link | None = found.link if found else None
        if found is None or link is None or not can_follow(link, rt.clock.now()):
            await misses.charge_network(client.network, user_id)
            return refused
        if found.has_guessable_code:
            misses.check_code(client.network, user_id)
    except RateLimited as exc:
        return exc
    checked = (await check_destinations(rt, [link.href]))[0]
    if isinstance(checked, RefractError):
        return checked
    reason, unchecked = checked.flag_reason, checked.unchecked
    return CheckedAddress(
        link.destination,
        link.href,
        link.destination_host,
        normalise_href(link.href),
        reason,
        unchecked,
        link.id,
    )
