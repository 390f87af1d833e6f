"""How to make what a path parameter names. A feature adds a function here for each parameter of its routes.

The object belongs to `world.owner`; where the feature knows them, `world.co_owner` is a co-owner and `world.recipient` a recipient.
The answer is the parameter's value; `world.made` has the values of the parameters before it (`/links/{link_id}/names/{name}`).
It is called anew for every request, since a request may use the object up.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy import select

from refract.identity import keys, sessions
from refract.identity.models import BrowserSession, Scope
from refract.web.render import static
from tests.access.identities import World

Maker = Callable[[World], Awaitable[str]]


@dataclass(frozen=True)
class Kind:
    """What stands behind a parameter, and a value that looks alike and stands for nothing."""

    make: Maker
    absent: str


OBJECTS: dict[str, Kind] = {}


def object_for(parameter: str, *, absent: str = "361890234523648") -> Callable[[Maker], Maker]:
    """Register a maker. `parameter` is the name in the path, or `/path/up/to/{parameter}` where the same name means something else."""

    def register(make: Maker) -> Maker:
        OBJECTS[parameter] = Kind(make, absent)
        return make

    return register


@object_for("key_id")
async def an_api_key(world: World) -> str:
    async with world.rt.db.write() as session:
        row, _ = await keys.create_key(session, world.rt, world.owner, "object", [Scope.READ])
    return str(row.id)


@object_for("session_id")
async def a_browser_session(world: World) -> str:
    async with world.rt.db.write() as session:
        await sessions.begin_session(session, world.rt, world.owner, "object")
        newest = select(BrowserSession.id).where(BrowserSession.agent == "object").order_by(BrowserSession.id.desc())
        return str(await session.scalar(newest.limit(1)))


@object_for("token", absent="A" * 43)
async def a_sign_in_link(world: World) -> str:
    async with world.rt.db.write() as session:
        return (await sessions.make_signin_link(session, world.rt, world.owner)).rsplit("/", 1)[1]


@object_for("digest", absent="0" * 10)
async def a_static_digest(world: World) -> str:
    return static("app.css").split("/")[2]


@object_for("name", absent="absent.css")
async def a_static_file(world: World) -> str:
    return "app.css"


def parameters_of(path: str) -> list[str]:
    return [one.partition(":")[0] for one in re.findall(r"{([^}]+)}", path)]


def kind_of(path: str, parameter: str) -> Kind:
    """The most particular maker there is for this parameter of this path."""
    up_to_here = path[: path.index("{" + parameter) + len(parameter) + 2]
    if kind := OBJECTS.get(up_to_here) or OBJECTS.get(parameter):
        return kind
    advice = f'Nothing says how to make "{{{parameter}}}" of {path}: add @object_for("{parameter}") in tests/access/objects.py.'
    raise LookupError(advice)


async def real_path(world: World, path: str) -> str:
    """The path with an object of the owner's behind every parameter, made from left to right."""
    world.made.clear()
    for parameter in parameters_of(path):
        world.made[parameter] = await kind_of(path, parameter).make(world)
    return _filled(path, world.made)


def absent_path(path: str) -> str:
    """The path with parameters that look alike and lead nowhere."""
    return _filled(path, {parameter: kind_of(path, parameter).absent for parameter in parameters_of(path)})


def _filled(path: str, values: dict[str, str]) -> str:
    return re.sub(r"{([^}:]+)[^}]*}", lambda found: values[found[1]], path)
