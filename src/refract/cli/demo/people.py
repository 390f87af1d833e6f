"""People of the demo: a small team, with what they arranged for themselves."""

from datetime import timedelta
from functools import partial
from typing import NamedTuple

from refract.cli.demo.timeline import Timeline
from refract.core.runtime import Runtime
from refract.identity import keys, users
from refract.identity.models import Scope, User, UserRole
from refract.identity.schemas import KeyCreate
from refract.library import service as library
from refract.library.schemas import RuleIn


class SamplePerson(NamedTuple):
    """A colleague, and when they joined, as a share of the whole time."""

    name: str
    email: str
    joined: float = 0.0


OWNER_NAME = "Ada Holm"
OWNER_BIO = "Platform team. Keeper of short names."
COLLEAGUES = (
    SamplePerson("Mira Okafor", "mira@example.com"),
    SamplePerson("Jonas Lindqvist", "jonas@example.com"),
    SamplePerson("Aiko Tanaka", "aiko@example.com", 0.3),
    SamplePerson("Samuel Reyes", "samuel@example.com", 0.72),
)
LINK_VIEWS = (
    ("Marketing by clicks", "tag=marketing&sort=clicks"),
    ("On call", "tag=operations"),
)
TAG_RULES = (
    ("tidewater.example", ["databases"]),
    ("quietpixels.example", ["design"]),
    ('"incident"', ["operations"]),
)


async def fill_people(rt: Runtime, timeline: Timeline, owner: User) -> list[User]:
    """Give the owner a profile, and let the others join; return all, in the order of the samples.

    Those who join later are added to the list when they do.
    """
    people = [owner]
    await _set_up_owner(rt, owner)
    for person in COLLEAGUES:
        if person.joined:
            timeline.add(person.joined, partial(_join, rt, people, person))
        else:
            await _join(rt, people, person)
    timeline.add(0.25, partial(_create_keys, rt, owner))
    return people


async def _set_up_owner(rt: Runtime, owner: User) -> None:
    views = [{"name": name, "query": query} for name, query in LINK_VIEWS]
    profile = {"nickname": OWNER_NAME, "bio": OWNER_BIO}
    rules = [RuleIn(pattern=pattern, tags=tags) for pattern, tags in TAG_RULES]
    async with rt.db.write() as session:
        await users.change_profile(session, owner.id, profile, {}, at=rt.clock.now())
        await users.save_preferences(session, owner.id, {"link_views": views})
        await library.replace_rules(session, rt, owner.id, rules)


async def _join(rt: Runtime, people: list[User], person: SamplePerson) -> None:
    email, name = person.email, person.name
    async with rt.db.write() as session:
        people.append(
            await users.create_local_user(
                session, rt, email, subject=email, role=UserRole.USER, name=name
            )
        )


async def _create_keys(rt: Runtime, owner: User) -> None:
    ends = rt.clock.now() + timedelta(days=365)
    new = (
        KeyCreate(name="Release notes", scopes=[Scope.READ, Scope.WRITE]),
        KeyCreate(name="Clicks on the team dashboard", scopes=[Scope.READ], expires_at=ends),
    )
    async with rt.db.write() as session:
        user = await session.get_one(User, owner.id)
        for key in new:
            await keys.create_audited_key(session, rt, user, key)
