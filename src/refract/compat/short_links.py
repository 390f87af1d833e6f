"""Short links as shortener clients address them: by name or code."""

from urllib.parse import urlsplit

from refract.compat.request import DialectRequest
from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.access import AccessRight
from refract.identity.authentication import Caller
from refract.limits.shared_limits import MissLimit
from refract.links import queries, service
from refract.links.access import load_access
from refract.links.dependencies import charge_code_like_names, to_link_caller
from refract.links.enums import LinkState
from refract.links.errors import LinkNotFound, NotOwner
from refract.links.models import Link
from refract.links.queries import LinkCard, load_card
from refract.links.schemas import LinkCreate
from refract.links.service import CreatedLink
from refract.names.grammar import build_short_url
from refract.names.service import check_code_guess, namespace_of
from refract.web.networks import client_network


def get_short_code(card: LinkCard) -> str:
    """Return the name by which a link is shown, else its code; without its domain."""
    return card.name


def get_short_url(rt: Runtime, card: LinkCard) -> str:
    return build_short_url(rt.settings.public_url, card.text)


def get_public_host(rt: Runtime) -> str:
    return urlsplit(rt.settings.public_url).netloc


def parse_short_code(rt: Runtime, text: str) -> str:
    """Return the name or code in a short URL, or the text itself."""
    text = text.strip()
    host = get_public_host(rt)
    for prefix in (f"{rt.settings.public_url}/", f"//{host}/", f"{host}/"):
        if text.lower().startswith(prefix.lower()):
            text = text[len(prefix) :]
            break
    return text.partition("?")[0].partition("#")[0].strip("/")


async def find_short_link(request: DialectRequest, code: str, host: str | None = None) -> Link:
    """Return a link whose clicks the caller may see. Raises `LinkNotFound` otherwise.

    `host` is its domain, None for the default one.
    Misses count against the limit of the caller and the network, like everywhere.
    """
    rt, caller = request.rt, request.caller
    network = client_network(request, rt)
    check_code_guess(rt, code, network, caller.user.id)
    async with rt.db.read() as session:
        found = await queries.resolve_name(session, code, host)
        if found is not None and found.link is not None:
            try:
                link, _ = await queries.view_link(
                    session, request.link_caller, found.link.id, AccessRight.STATS
                )
            except NotOwner:
                found = None
            else:
                if link.status != LinkState.DELETED:
                    return link
                found = None
    if not caller.is_admin:
        await rt.singleton(MissLimit).charge_network(network, caller.user.id)
    raise LinkNotFound


async def load_short_link(request: DialectRequest, code: str, host: str | None = None) -> LinkCard:
    """Return a link like `find_short_link`, with everything that is shown about it."""
    link = await find_short_link(request, code, host)
    async with request.rt.db.read() as session:
        return await load_card(session, link)


async def create_short_link(request: DialectRequest, new: LinkCreate) -> CreatedLink:
    """Create a link through the one service.

    A name of the caller's own deleted link is released first: the other systems free it.
    """
    rt, caller = request.rt, request.caller
    await charge_code_like_names(rt, caller, new.names)
    checked = await service.check_link(rt, new)
    async with rt.db.write() as session:
        for name in new.names:
            await _release_deleted_name(session, rt, caller, name, checked.domain)
        return await service.create_link(session, rt, caller.user, checked)


async def _release_deleted_name(
    session: WriteSession, rt: Runtime, caller: Caller, name: str, host: str | None
) -> None:
    found = await queries.resolve_name(session, name, host)
    if found is None or found.link is None or found.how != "name":
        return
    link, who = found.link, to_link_caller(caller)
    if link.status == LinkState.DELETED and (await load_access(session, who, link)).owns:
        await service.release_name(session, namespace_of(rt), who, link.id, name, host=host)
