"""Provocations of links, their names, people and destinations."""

from contextlib import suppress
from datetime import timedelta

from pydantic import SecretStr
from sqlalchemy import delete

from refract.core.runtime import Runtime
from refract.links import service
from refract.links.access import LinkCaller as LinkActor
from refract.links.campaigns.errors import TooManyUtmTemplates
from refract.links.campaigns.models import UtmTemplate
from refract.links.campaigns.schemas import UtmTemplateCreate
from refract.links.campaigns.service import create_template
from refract.links.enums import InvitedRole
from refract.links.models import LinkInvitation
from refract.links.safety.blocked_domains import block_domain
from refract.links.safety.models import UrlVerdict
from refract.links.safety.queries import UrlFinding, store_checks
from tests import make
from tests.errors.provoking import provokes, sends
from tests.errors.site import Asking, Site, unique

BLOCKED = "https://blocked.example/page"
DANGEROUS = "https://dangerous.example/page"
_LINK = "/links/{link_id}"
_KEY = SecretStr("key")
_SECOND = timedelta(seconds=1)


async def link_to(asking: Asking, destination: str = make.DESTINATION, **given: object) -> str:
    async with asking.rt.db.write() as session:
        return str(
            (await make.link(session, asking.rt, asking.world.owner, destination, **given)).id
        )


def rules_to(destination: str, **given: object) -> dict[str, list[dict[str, object]]]:
    return {"rules": [{"destination": destination, "conditions": {"share": 50}, **given}]}


async def block(rt: Runtime) -> None:
    async with rt.db.write() as session:
        await block_domain(session, "blocked.example", reason="test", by=None, at=rt.clock.now())


async def checked_site(asking: Asking) -> Site:
    """Return the site with a checking service that found a URL dangerous and is now unavailable."""
    async with asking.rt.db.write() as session:
        await store_checks(
            session, {DANGEROUS: UrlFinding(UrlVerdict.BAD, "MALWARE")}, asking.rt.clock.now()
        )
    return asking.site.with_settings(
        safe_browsing_key=_KEY, safe_browsing_url="http://127.0.0.1:9/"
    )


sends("INVALID_URL", "POST /links", f"PATCH {_LINK}", json={"destination": "ftp://example.com/"})
sends("LINK_LOOP", "POST /links", f"PATCH {_LINK}", json={"destination": "http://go.test/roadmap"})
sends(
    "INVALID_TAG",
    "POST /links",
    f"PATCH {_LINK}",
    json={"destination": make.DESTINATION, "tags": ["<>"]},
)
sends(
    "TOO_MANY_TAGS",
    "POST /links",
    f"PATCH {_LINK}",
    json={"destination": make.DESTINATION, "tags": [f"t{n}" for n in range(21)]},
)
sends(
    "EXPIRY_IN_PAST",
    "POST /links",
    f"PATCH {_LINK}",
    json={"destination": make.DESTINATION, "expires_at": "2020-01-01T00:00:00Z"},
)
sends("EXPIRY_IN_PAST", f"POST {_LINK}/renew", json={"expires_at": "2020-01-01T00:00:00Z"})
sends("INVALID_SLUG", "POST /links", json={"destination": make.DESTINATION, "names": ["a b"]})
sends("INVALID_SLUG", f"POST {_LINK}/names", json={"name": "a b"})
sends("SLUG_RESERVED", "POST /links", json={"destination": make.DESTINATION, "names": ["api"]})
sends("SLUG_RESERVED", f"POST {_LINK}/names", json={"name": "api"})
sends("INVALID_URL", f"PUT {_LINK}/rules", json=rules_to("ftp://example.com/"))
sends("LINK_LOOP", f"PUT {_LINK}/rules", json=rules_to("http://go.test/roadmap"))
sends("UNKNOWN_RULE", f"PUT {_LINK}/rules", json=rules_to(make.DESTINATION, number=7))
_LONG_RULES = [
    {
        "destination": make.DESTINATION,
        "conditions": {"referrers": [f"{'a' * 60}.{'b' * 60}.h{n}.test" for n in range(23)]},
    }
] * 20
sends("RULES_TOO_LONG", f"PUT {_LINK}/rules", json={"rules": _LONG_RULES})
sends(
    "RULES_TOO_LONG",
    "POST /links",
    json={"destination": make.DESTINATION, "rules": _LONG_RULES},
)
_TEMPLATES, _ONE_TEMPLATE = "/utm-templates", "/utm-templates/{template_id}"
sends("UTM_TEMPLATE_EMPTY", f"POST {_TEMPLATES}", json={"name": "Empty"})
sends("UTM_TEMPLATE_EMPTY", f"PATCH {_ONE_TEMPLATE}", json={"utm_source": None})
sends(
    "TEAM_NOT_FOUND",
    f"POST {_TEMPLATES}",
    json={"name": "News", "utm_source": "x", "team": "absent"},
)
sends(
    "UTM_TEMPLATE_NOT_FOUND",
    "POST /links",
    f"PATCH {_LINK}",
    json={"destination": make.DESTINATION, "utm_template": "361890234523648"},
)
sends("UNSUPPORTED_SORT", "GET /links", query={"owner": "public", "sort": "clicks"})
sends("ADMIN_REQUIRED", "GET /links", query={"owner": "all"})
sends(
    "USER_NOT_FOUND",
    *(f"POST {_LINK}/{what}" for what in ("owners", "transfer", "shares")),
    json={"email": "nobody@example.com"},
)
sends("SHARE_EXISTS", f"POST {_LINK}/shares", json={"email": "rita@example.com"})
sends(
    "OWNER_EXISTS",
    f"POST {_LINK}/owners",
    f"POST {_LINK}/shares",
    json={"email": "carl@example.com"},
)
sends("OWNER_EXISTS", f"POST {_LINK}/transfer", json={"email": "olga@example.com"})
sends("INVALID_DOMAIN", "POST /admin/blocked-domains", json={"domain": "not a domain"})


async def _add_template(asking: Asking, name: str) -> None:
    async with asking.rt.db.write() as session:
        new = UtmTemplateCreate(name=name, utm_source="source")
        await create_template(session, asking.world.owner, new, asking.rt.clock.now())


@provokes("UTM_TEMPLATE_EXISTS", f"POST {_TEMPLATES}", f"PATCH {_ONE_TEMPLATE}")
async def name_of_another_template(asking: Asking) -> None:
    name = unique("template")
    await _add_template(asking, name)
    await asking.ask(json={"name": name.upper(), "utm_source": "source"})


@provokes("TOO_MANY_UTM_TEMPLATES", f"POST {_TEMPLATES}")
async def one_template_too_many(asking: Asking) -> None:
    with suppress(TooManyUtmTemplates):
        while True:
            await _add_template(asking, unique("template"))
    await asking.ask(json={"name": "Another", "utm_source": "source"})
    async with asking.rt.db.write() as session:
        await session.execute(delete(UtmTemplate))


@provokes("BLOCKED_DESTINATION", "POST /links", f"PATCH {_LINK}")
async def blocked_destination(asking: Asking) -> None:
    await block(asking.rt)
    await asking.ask(json={"destination": BLOCKED})


@provokes("BLOCKED_DESTINATION", f"PUT {_LINK}/rules")
async def blocked_destination_of_a_rule(asking: Asking) -> None:
    await block(asking.rt)
    await asking.ask(json=rules_to(BLOCKED))


@provokes("MALICIOUS_URL", f"PUT {_LINK}/rules")
async def dangerous_destination_of_a_rule(asking: Asking) -> None:
    await asking.ask(json=rules_to(DANGEROUS), site=await checked_site(asking))


@provokes("MALICIOUS_URL", "POST /links", f"PATCH {_LINK}")
async def dangerous_destination(asking: Asking) -> None:
    await asking.ask(json={"destination": DANGEROUS}, site=await checked_site(asking))


@provokes("BLOCKED_DESTINATION", f"POST {_LINK}/history/{{version}}/revert")
async def destination_that_was_blocked_since(asking: Asking) -> None:
    link_id = await link_to(asking, "https://blocked-later.example/")
    async with asking.rt.db.write() as session:
        await block_domain(
            session, "blocked-later.example", reason="test", by=None, at=asking.rt.clock.now()
        )
    await asking.ask(await asking.target(link_id=link_id))


@provokes("MALICIOUS_URL", f"POST {_LINK}/history/{{version}}/revert")
async def destination_that_was_found_dangerous_since(asking: Asking) -> None:
    link_id = await link_to(asking, DANGEROUS)
    await asking.ask(await asking.target(link_id=link_id), site=await checked_site(asking))


@provokes("LINK_LOOP", f"POST {_LINK}/history/{{version}}/revert")
async def destination_that_became_our_own(asking: Asking) -> None:
    """Move the installation to the host of a link's destination."""
    link_id = await link_to(asking, "http://moved.test/page")
    moved = asking.site.with_settings(base_url="http://moved.test")
    await asking.ask(await asking.target(link_id=link_id), site=moved, more={"Host": "moved.test"})


@provokes("SLUG_TAKEN", "POST /links")
async def taken_name_of_a_new_link(asking: Asking) -> None:
    await link_to(asking, name=(name := unique()))
    await asking.ask(json={"destination": make.DESTINATION, "names": [name]})


@provokes("SLUG_TAKEN", f"POST {_LINK}/names")
async def taken_name(asking: Asking) -> None:
    await link_to(asking, name=(name := unique()))
    await asking.ask(json={"name": name})


@provokes("TOO_MANY_NAMES", f"POST {_LINK}/names")
async def fifty_first_name(asking: Asking) -> None:
    await asking.ask(
        await asking.target(link_id=await link_to(asking, names=[unique() for _ in range(50)]))
    )


_DELETED = ("names", "disable", "renew", "owners", "transfer", "shares", "history/{version}/revert")


@provokes(
    "INVALID_STATE_TRANSITION",
    f"PATCH {_LINK}",
    f"PUT {_LINK}/rules",
    *(f"POST {_LINK}/{step}" for step in _DELETED),
)
async def change_of_a_deleted_link(asking: Asking) -> None:
    link_id = await link_to(asking)
    async with asking.rt.db.write() as session:
        await service.delete_link(
            session, LinkActor(asking.world.owner.id), int(link_id), asking.rt.clock.now()
        )
    await asking.ask(await asking.target(link_id=link_id))


@provokes("INVALID_STATE_TRANSITION", f"POST {_LINK}/enable")
async def active_link_that_is_enabled(asking: Asking) -> None:
    await asking.ask(await asking.target(link_id=await link_to(asking)))


@provokes("NOTHING_TO_UNDO", f"POST {_LINK}/undo")
async def new_link_that_is_undone(asking: Asking) -> None:
    await asking.ask(await asking.target(link_id=await link_to(asking)))


@provokes("CHANGED_BY_ADMIN", f"POST {_LINK}/enable", f"POST {_LINK}/undo")
async def link_that_an_administrator_disabled(asking: Asking) -> None:
    link_id = await link_to(asking)
    async with asking.rt.db.write() as session:
        await service.disable_link(
            session,
            LinkActor(asking.world.admin.id, is_admin=True),
            int(link_id),
            asking.rt.clock.now(),
        )
    await asking.ask(await asking.target(link_id=link_id))


@provokes("RENEWAL_REQUIRED", f"POST {_LINK}/enable")
async def disabled_link_that_expired(asking: Asking) -> None:
    soon = asking.rt.clock.now().replace(microsecond=0) + _SECOND
    link_id = await link_to(asking, expires_at=soon)
    async with asking.rt.db.write() as session:
        await service.disable_link(
            session, LinkActor(asking.world.owner.id), int(link_id), asking.rt.clock.now()
        )
    asking.rt.clock.advance(2)  # type: ignore[attr-defined]  # a ManualClock
    await asking.ask(await asking.target(link_id=link_id))


@provokes("AMBIGUOUS_EMAIL", *(f"POST {_LINK}/{what}" for what in ("owners", "transfer", "shares")))
async def email_of_two(asking: Asking) -> None:
    email = f"{unique('twin')}@example.com"
    async with asking.rt.db.write() as session:
        for _ in range(2):
            await make.person(session, asking.rt, unique("twin"), email=email)
    await asking.ask(json={"email": email})


@provokes("TOO_MANY_INVITATIONS", f"POST {_LINK}/owners", f"POST {_LINK}/transfer")
async def one_invitation_too_many(asking: Asking) -> None:
    link_id = await link_to(asking)
    async with asking.rt.db.write() as session:
        for _ in range(20):
            invited = await make.person(session, asking.rt, unique("invited"))
            offered = await service.invite_owner(
                session,
                LinkActor(asking.world.owner.id),
                int(link_id),
                invited.email,
                InvitedRole.OWNER,
                asking.rt.clock.now(),
            )
            assert isinstance(offered, LinkInvitation)
    await asking.ask(await asking.target(link_id=link_id))


@provokes("PRIMARY_OWNER_PROTECTED", f"DELETE {_LINK}/owners/{{user_id}}")
async def primary_owner_that_is_removed(asking: Asking) -> None:
    await asking.ask(await asking.target(user_id=str(asking.world.owner.id)))


@provokes("INVALID_STATE_TRANSITION", "POST /me/invitations/{invitation_id}/accept")
async def invitation_to_a_deleted_link(asking: Asking) -> None:
    path = await asking.target()
    async with asking.rt.db.write() as session:
        invitation = await session.get_one(LinkInvitation, int(asking.world.made["invitation_id"]))
        await service.delete_link(
            session, LinkActor(invitation.inviter_id), invitation.link_id, asking.rt.clock.now()
        )
    await asking.ask(path)


_FIELDS_OF_CHANGES: dict[str, dict[str, object]] = {
    "START_AFTER_EXPIRY": {
        "starts_at": "2090-01-02T00:00:00Z",
        "expires_at": "2090-01-01T00:00:00Z",
    },
    "PASSWORD_REQUIRED": {"visibility": "password"},
    "PASSWORD_UNUSED": {"visibility": "public", "password": "open sesame"},
    "UNLISTED_REQUIRED": {"visibility": "public", "click_limit": 1},
}
for _code, _fields in _FIELDS_OF_CHANGES.items():
    sends(_code, "POST /links", json={"destination": make.DESTINATION} | _fields)
    sends(_code, f"PATCH {_LINK}", json=_fields)
