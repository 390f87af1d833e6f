"""What commands about one link share: who acts, which link is meant, and how it is shown afterwards."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import typer

from refract.cli.common import acting, command_settings, on_data
from refract.cli.links.shown import print_json
from refract.core.db import ReadSession, WriteSession
from refract.core.errors import NotFound
from refract.core.runtime import Runtime
from refract.core.schema import read_id
from refract.core.text import shown
from refract.identity.access import Right
from refract.identity.models import User, UserRole
from refract.links.access import Who, standing_of
from refract.links.models import Link
from refract.links.queries import card_of, did_you_mean, find_link, resolve, view_link
from refract.links.schemas import LinkOut
from refract.links.service import Held
from refract.names.service import Namespace, namespace_of

Which = Annotated[str, typer.Argument(help="Name, code, id or short URL.", metavar="LINK")]


class UnknownLink(NotFound):
    """There is no link "{typed}".{hint}"""


@dataclass(frozen=True, slots=True)
class Desk:
    """Somebody at work on links."""

    rt: Runtime
    person: User
    who: Who
    space: Namespace

    async def find(self, session: ReadSession, typed: str) -> Link:
        """The link that is meant, if the person may see it."""
        segment = segment_of(typed)
        found = await resolve(session, segment)
        link = found.link if found else await _by_id(session, segment)
        if link is None:
            near = await did_you_mean(session, segment, self.who, self.rt.clock.now())
            raise UnknownLink(typed=shown(typed), hint=f" Did you mean {' or '.join(near)}?" if near else "")
        return (await view_link(session, self.who, link.id))[0]

    async def out(self, session: ReadSession, link: Link) -> LinkOut:
        standing = await standing_of(session, self.who, link)
        stats, managing = standing.may(Right.STATS), standing.may(Right.MANAGE)
        card = await card_of(session, link)
        return card.shown(self.rt.settings.public_url, self.rt.clock.now(), stats=stats, managing=managing)


async def at_desk(rt: Runtime, email: str | None) -> Desk:
    person = await acting(rt, email)
    return Desk(rt, person, Who(person.id, person.role == UserRole.ADMIN), namespace_of(rt))


def segment_of(typed: str) -> str:
    """What stands for a link in an address, or in a path, or by itself."""
    return unquote(_path(typed).partition("/")[0])


def extra_of(typed: str) -> tuple[str, str]:
    """The path behind the link's own segment, and the query, both as typed."""
    return _path(typed).partition("/")[2], typed.partition("#")[0].partition("?")[2]


def _path(typed: str) -> str:
    bare = typed.partition("#")[0].partition("?")[0]
    scheme, address, rest = bare.partition("://")
    return (rest.partition("/")[2] if address else scheme).lstrip("/")


async def _by_id(session: ReadSession, text: str) -> Link | None:
    try:
        return await find_link(session, read_id(text))
    except ValueError:
        return None


Act = Callable[[WriteSession, Desk, int], Awaitable[Held]]


def change_one(which: str, act: Act, said: str, *, user: str | None, as_json: bool, data_dir: Path | None) -> None:
    """Change a link in one transaction, and say so. `said` is a sentence about `{link}`; it may also speak of `{code}` and `{expiry}`."""

    async def run(rt: Runtime) -> LinkOut:
        desk = await at_desk(rt, user)
        async with rt.db.write() as session:
            link = await desk.find(session, which)
            held = await act(session, desk, link.id)
            return await desk.out(session, held.link)

    tell(on_data(command_settings(data_dir), run), said, as_json=as_json)


def tell(link: LinkOut, said: str, *, as_json: bool) -> None:
    if as_json:
        print_json(link)
        return
    expiry = f"{link.expires_at:%Y-%m-%d %H:%M} UTC" if link.expires_at else "never"
    typer.echo(said.format(link=link.names[0] if link.names else link.code, code=link.code, expiry=expiry))
