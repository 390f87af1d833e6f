"""Helpers of commands on a link: the acting user, and finding the link."""

from dataclasses import dataclass
from typing import Annotated

import typer

from refract.cli.common import get_acting_user
from refract.core.db.session import ReadSession
from refract.core.errors import NotFound
from refract.core.runtime import Runtime
from refract.core.schemas import parse_id
from refract.core.text import make_excerpt
from refract.domains.hosts import split_address
from refract.identity.access import AccessRight
from refract.identity.models import User, UserRole
from refract.links.access import LinkCaller, load_access
from refract.links.models import Link
from refract.links.queries import (
    find_link,
    load_card,
    resolve_name,
    suggest_other_domains,
    suggest_similar_names,
    view_link,
)
from refract.links.schemas import LinkOut

LinkArgument = Annotated[str, typer.Argument(help="Name, code, id or short URL.", metavar="LINK")]


class UnknownLink(NotFound):
    """There's no link "{typed}".{hint}"""


@dataclass(frozen=True, slots=True)
class LinkCommandContext:
    """The runtime, the acting user and their rights on links."""

    rt: Runtime
    user: User
    caller: LinkCaller

    async def find_link(self, session: ReadSession, typed: str) -> Link:
        """Return the link that was typed, if the user may see it."""
        host, _ = split_address(self.rt.settings.public_url, typed)
        segment = parse_segment(typed)
        found = await resolve_name(session, segment, host)
        link = found.link if found else await _find_by_id(session, segment)
        if link is None:
            raise UnknownLink(typed=make_excerpt(typed), hint=await self._suggest(session, segment))
        return (await view_link(session, self.caller, link.id))[0]

    async def _suggest(self, session: ReadSession, name: str) -> str:
        """Return a question for a name that is unknown: on another domain, or spelled so?"""
        asked = (session, name, self.caller, self.rt.clock.now())
        near = await suggest_other_domains(*asked) or await suggest_similar_names(*asked)
        return f" Did you mean {' or '.join(near)}?" if near else ""

    async def to_schema(self, session: ReadSession, link: Link) -> LinkOut:
        """Return the link as the API would return it to this user."""
        access = await load_access(session, self.caller, link)
        stats, managing = access.allows(AccessRight.STATS), access.allows(AccessRight.MANAGE)
        card = await load_card(session, link)
        return card.to_schema(
            self.rt.settings.public_url, self.rt.clock.now(), stats=stats, managing=managing
        )


async def load_context(rt: Runtime, email: str | None) -> LinkCommandContext:
    """Return the context of the user with this email, or of the owner."""
    person = await get_acting_user(rt, email)
    return LinkCommandContext(rt, person, LinkCaller(person.id, person.role == UserRole.ADMIN))


def parse_segment(typed: str) -> str:
    """Return the name, code or id in a short URL, in a path or on its own."""
    from refract.redirect.resolver import (  # noqa: PLC0415 - not for commands without a link
        parse_typed_path,
    )

    return parse_typed_path(_extract_path(typed)).name


def parse_extra(typed: str) -> tuple[str, str]:
    """Return the path after the link's own segment, and the query, both as typed."""
    return _extract_path(typed).partition("/")[2], typed.partition("#")[0].partition("?")[2]


def _extract_path(typed: str) -> str:
    return split_address("", typed.partition("#")[0].partition("?")[0])[1]


async def _find_by_id(session: ReadSession, text: str) -> Link | None:
    try:
        return await find_link(session, parse_id(text))
    except ValueError:
        return None
