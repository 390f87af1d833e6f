"""Addresses on their way into a list: through the same checks as links, and our own short links taken for what they are.

Asks other services, so no transaction may be open.
"""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from refract.core.errors import RefractError
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl, WebUrl, normalise, parse_web_url
from refract.links.models import Link
from refract.links.queries import resolve
from refract.links.safety import Vetted, vet
from refract.links.safety_errors import InvalidUrl, LinkLoop
from refract.lists.schemas import LONGEST_URL
from refract.lists.service import Address
from refract.lists.shown import follows, normalised


async def look_at(rt: Runtime, typed: Sequence[str]) -> list[Address | RefractError]:
    """For each address, in order: what may be added, or why not."""
    read = [_read(text) for text in typed]
    good = [index for index, one in enumerate(read) if isinstance(one, Address)]
    judged = await vet(rt, [one.href for one in read if isinstance(one, Address)])
    answers: list[Address | RefractError] = list(read)
    for index, verdict in zip(good, judged, strict=True):
        address = read[index]
        if isinstance(verdict, Vetted) and isinstance(address, Address):
            answers[index] = replace(address, flag_reason=verdict.flag_reason, unchecked=verdict.unchecked, host=verdict.host)
        elif isinstance(verdict, LinkLoop) and isinstance(address, Address):
            answers[index] = await _own(rt, address, verdict)
        elif isinstance(verdict, RefractError):
            answers[index] = verdict
    return answers


def _read(text: str) -> Address | RefractError:
    typed = text.strip()
    try:
        url = parse_web_url(typed, limit=LONGEST_URL, assume_https=True)
    except BadUrl as wrong:
        return InvalidUrl(reason=str(wrong), field="url")
    href = _plain(url)
    shown = typed if "://" in typed.split("?", 1)[0] else f"https://{typed}"
    return Address(shown, href, url.host, normalise(parse_web_url(href, limit=len(href))))


def _plain(url: WebUrl) -> str:
    """Braces mean nothing in a list, while in a link they are placeholders."""
    return url.href.replace("{", "%7B").replace("}", "%7D")


async def _own(rt: Runtime, address: Address, refused: LinkLoop) -> Address | RefractError:
    """A short link of ours is followed: the entry leads where the link leads, today and after it was changed."""
    if urlsplit(address.href).netloc != urlsplit(rt.settings.public_url).netloc:
        return refused
    parts = urlsplit(address.href)
    name = parts.path.strip("/")
    if not name or "/" in name or parts.query:
        return refused
    async with rt.db.read() as session:
        found = await resolve(session, name)
        link: Link | None = found.link if found else None
    if link is None or not follows(link, rt.clock.now()):
        return refused
    checked = (await vet(rt, [link.href]))[0]
    if isinstance(checked, RefractError):
        return checked
    reason, unchecked = checked.flag_reason, checked.unchecked
    return Address(link.destination, link.href, link.destination_host, normalised(link.href), reason, unchecked, link.id)
