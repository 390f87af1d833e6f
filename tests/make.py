"""People and links for tests, made the way the program makes them."""

from typing import Any

from refract.core.db import WriteSession
from refract.core.runtime import Runtime
from refract.identity.models import User, UserRole, UserStatus
from refract.identity.people import fold_email
from refract.links import service
from refract.links.access import Who
from refract.links.models import Link
from refract.links.schemas import LinkCreate
from refract.links.service import Made, Wish
from refract.links.vetting import Vetted, vet
from refract.names.grammar import Reserved
from refract.names.service import Namespace

DESTINATION = "https://example.com/"


def space(rt: Runtime) -> Namespace:
    return Namespace(rt.ids, rt.clock, Reserved())


def who(user: User, *, admin: bool = False) -> Who:
    return Who(user.id, admin)


def somebody(rt: Runtime, name: str, **given: Any) -> User:
    """Somebody who signed in before, with a verified address; not yet in the database."""
    now = rt.clock.now()
    email = given.pop("email", f"{name}@example.com")
    fields = {
        "issuer": "https://id.test", "subject": name, "email": email, "email_folded": fold_email(email), "email_verified": True,
        "display_name": name.title(), "preferences": {}, "plan": "free", "role": UserRole.USER, "status": UserStatus.ACTIVE,
        "created_at": now, "last_sync_at": now,
    }  # fmt: skip
    return User(id=rt.ids.next_id(), **{**fields, **given})


async def person(session: WriteSession, rt: Runtime, name: str, **given: Any) -> User:
    user = somebody(rt, name, **given)
    session.add(user)
    await session.flush()
    return user


async def wish(rt: Runtime, destination: str = DESTINATION, **given: Any) -> Wish:
    new = LinkCreate(destination=destination, **given)
    vetted = (await vet(rt, [destination]))[0]
    assert isinstance(vetted, Vetted)
    return Wish(new, vetted, (new.visibility or rt.settings.default_visibility))


async def made(session: WriteSession, rt: Runtime, owner: User, destination: str = DESTINATION, **given: Any) -> Made:
    return await service.create_link(session, space(rt), owner, await wish(rt, destination, **given))


async def link(session: WriteSession, rt: Runtime, owner: User, destination: str = DESTINATION, **given: Any) -> Link:
    """A link of somebody's; `name` stands for a list of one."""
    if "name" in given:
        given["names"] = [given.pop("name")]
    number = (await made(session, rt, owner, destination, **given)).card.link.id
    return await session.get_one(Link, number)
