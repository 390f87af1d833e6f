"""Helpers of commands on a link: the acting user, finding the link, reporting the change."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from refract.cli.common import get_acting_user, load_command_settings, run_on_data
from refract.cli.output import print_json
from refract.core.db.session import ReadSession, WriteSession
from refract.core.errors import NotFound
from refract.core.runtime import Runtime
from refract.core.schemas import parse_id
from refract.core.text import make_excerpt
from refract.identity.access import AccessRight
from refract.identity.models import User, UserRole
from refract.links.access import LinkCaller, load_access
from refract.links.models import Link
from refract.links.queries import (
    find_link,
    load_card,
    resolve_name,
    suggest_similar_names,
    view_link,
)
from refract.links.schemas import LinkOut
from refract.links.service import LockedLink
from refract.names.service import Namespace, namespace_of

LinkArgument = Annotated[str, typer.Argument(help="Name, code, id or short URL.", metavar="LINK")]


class UnknownLink(NotFound):
    """There's no link "{typed}".{hint}"""


@dataclass(frozen=True, slots=True)
class LinkCommandContext:
    """The runtime, the acting user and their rights on links."""

    rt: Runtime
    user: User
    caller: LinkCaller
    namespace: Namespace

    async def find_link(self, session: ReadSession, typed: str) -> Link:
        """Return the link that was typed, if the user may see it."""
        segment = parse_segment(typed)
        found = await resolve_name(session, segment)
        link = found.link if found else await _find_by_id(session, segment)
        if link is None:
            similar = await suggest_similar_names(
                session, segment, self.caller, self.rt.clock.now()
            )
            raise UnknownLink(
                typed=make_excerpt(typed),
                hint=f" Did you mean {' or '.join(similar)}?" if similar else "",
            )
        return (await view_link(session, self.caller, link.id))[0]

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
    return LinkCommandContext(
        rt, person, LinkCaller(person.id, person.role == UserRole.ADMIN), namespace_of(rt)
    )


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
    bare = typed.partition("#")[0].partition("?")[0]
    scheme, address, rest = bare.partition("://")
    return (rest.partition("/")[2] if address else scheme).lstrip("/")


async def _find_by_id(session: ReadSession, text: str) -> Link | None:
    try:
        return await find_link(session, parse_id(text))
    except ValueError:
        return None


LinkCommandAction = Callable[[WriteSession, LinkCommandContext, int], Awaitable[LockedLink]]


def change_link(
    which: str,
    act: LinkCommandAction,
    message: str,
    *,
    user: str | None,
    as_json: bool,
    data_dir: Path | None,
) -> None:
    """Change a link in one transaction and print `message`.

    The message may contain `{link}`, `{code}` and `{expiry}`.
    """

    async def run(rt: Runtime) -> LinkOut:
        context = await load_context(rt, user)
        async with rt.db.write() as session:
            link = await context.find_link(session, which)
            locked = await act(session, context, link.id)
            return await context.to_schema(session, locked.link)

    print_change(run_on_data(load_command_settings(data_dir), run), message, as_json=as_json)


def print_change(link: LinkOut, message: str, *, as_json: bool) -> None:
    """Print the changed link as JSON, or the message about it."""
    if as_json:
        print_json(link)
        return
    expiry = f"{link.expires_at:%Y-%m-%d %H:%M} UTC" if link.expires_at else "never"
    typer.echo(
        message.format(
            link=link.names[0] if link.names else link.code, code=link.code, expiry=expiry
        )
    )
