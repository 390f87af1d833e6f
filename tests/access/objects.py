"""How to make what a path parameter names.

A feature adds a function here for each parameter of its routes.

The object belongs to `world.owner`; where the feature knows them, `world.co_owner` is a co-owner
and `world.recipient` a recipient. The answer is the parameter's value; `world.made` has the values
of the parameters before it (`/links/{link_id}/names/{name}`). It is called anew for every request,
since a request may use the object up.
"""

import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sqlalchemy import delete, select

from refract.identity import keys, sessions, tombstones
from refract.identity.invitations.schemas import AccountInvitationCreate
from refract.identity.invitations.service import create_invitation
from refract.identity.models import (
    LOCAL_ISSUER,
    AccountTombstone,
    ApiKey,
    BrowserSession,
    Scope,
    User,
)
from refract.imports.models import ImportStatus, ImportSubject
from refract.imports.service import create_import
from refract.jobs.models import Job, JobStatus
from refract.library import service as items
from refract.library.enrichment.types import EnrichmentProposal
from refract.library.imports import Bookmark
from refract.library.imports.importer import add_import_rows
from refract.library.schemas import ItemCreate, RuleIn
from refract.library.service import tag_changes
from refract.links import service as links
from refract.links.access import LinkCaller as Standing
from refract.links.campaigns.schemas import UtmTemplateCreate
from refract.links.campaigns.service import create_template
from refract.links.enums import InvitedRole
from refract.links.models import LinkInvitation
from refract.links.safety.blocked_domains import block_domain
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from refract.lists.models import LinkList
from refract.lists.queries import list_entries
from refract.lists.schemas import SectionCreate
from refract.lists.service import remove_entry
from refract.names.enums import NameTarget as NameKind
from refract.names.queries import list_names
from refract.reports import service as reports
from refract.reports.models import ReportReason
from refract.reports.schemas import ReportCreate
from refract.tags import personal_tags
from refract.tags.models import SHARED_SPACE, Tag, TagAlias
from refract.teams.models import Team, TeamRole
from refract.web.static_files import static_digest
from tests import make
from tests.access.identities import World

Maker = Callable[[World], Awaitable[str]]


@dataclass(frozen=True)
class Kind:
    """What stands behind a parameter, and a value that looks alike and stands for nothing."""

    make: Maker
    absent: str


OBJECTS: dict[str, Kind] = {}


def object_for(parameter: str, *, absent: str = "361890234523648") -> Callable[[Maker], Maker]:
    """Register a maker.

    `parameter` is the name in the path, `/path/up/to/{parameter}` where the same name means
    something else, or `/the/whole/path#parameter` where one route needs the object in a state of
    its own.
    """

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
        await sessions.create_session(session, world.rt, world.owner, "object")
        newest = (
            select(BrowserSession.id)
            .where(BrowserSession.agent == "object")
            .order_by(BrowserSession.id.desc())
        )
        return str(await session.scalar(newest.limit(1)))


@object_for("token", absent="A" * 43)
async def a_sign_in_link(world: World) -> str:
    async with world.rt.db.write() as session:
        return (await sessions.create_signin_link(session, world.rt, world.owner)).rsplit("/", 1)[1]


@object_for("/auth/invitation/{token}", absent="A" * 43)
async def a_link_of_an_invitation(world: World) -> str:
    async with world.rt.db.write() as session:
        _, url = await create_invitation(
            session, world.rt, world.admin, AccountInvitationCreate(name="Object")
        )
    assert url is not None
    return url.rsplit("/", 1)[1]


@object_for("/app/admin/invitations/{invitation_id}")
@object_for("/api/v1/admin/invitations/{invitation_id}")
async def an_invitation_to_join(world: World) -> str:
    async with world.rt.db.write() as session:
        row, _ = await create_invitation(
            session, world.rt, world.admin, AccountInvitationCreate(name="Object")
        )
    return str(row.id)


@object_for("/app/admin/people/{user_id}/signin-link#user_id")
async def somebody_without_a_provider(world: World) -> str:
    async with world.rt.db.write() as session:
        name = f"object-{secrets.token_hex(6)}"
        return str((await make.person(session, world.rt, name, issuer=LOCAL_ISSUER)).id)


@object_for("digest", absent="0" * 10)
async def a_static_digest(world: World) -> str:
    return static_digest()


@object_for("name", absent="absent.css")
async def a_static_file(world: World) -> str:
    return "css/app.css"


@object_for("link_id")
async def a_link(world: World) -> str:
    """Active, with a name and a tag, co-owned and shared."""
    return str(await _link(world))


@object_for("/api/v1/links/{link_id}/enable#link_id")
@object_for("/api/v1/links/{link_id}/undo#link_id")
async def a_disabled_link(world: World) -> str:
    link_id = await _link(world)
    async with world.rt.db.write() as session:
        await links.disable_link(session, Standing(world.owner.id), link_id, world.rt.clock.now())
    return str(link_id)


async def _link(world: World) -> int:
    async with world.rt.db.write() as session:
        link = await make.link(
            session, world.rt, world.owner, name=f"object-{secrets.token_hex(6)}", tags=["Object"]
        )
        now = world.rt.clock.now()
        await links.add_owner(session, Standing(world.owner.id), link.id, world.co_owner.email, now)
        await links.share_link(
            session, Standing(world.owner.id), link.id, world.recipient.email, now
        )
        owner, role = Standing(world.owner.id), InvitedRole.OWNER
        await links.invite_owner(session, owner, link.id, world.invited.email, role, now)
        await make.join(session, world.rt, world.crew, world.former)
        chief = Standing(world.manager.id, is_admin=True)
        await links.add_team(session, chief, link.id, world.crew.slug, now)
        await make.leave(session, world.rt, world.crew, world.former)
        return link.id


@object_for("/app/links/{link_id}/teams/{team_id}")
@object_for("/api/v1/links/{link_id}/teams/{team_id}")
async def a_team_of_the_link(world: World) -> str:
    return str(world.crew.id)


@object_for("template_id")
async def a_utm_template(world: World) -> str:
    """The owner's own. Those of teams are in tests/links/test_utm_templates.py."""
    async with world.rt.db.write() as session:
        new = UtmTemplateCreate(name=secrets.token_hex(6), utm_source="object")
        owned = await create_template(session, world.owner, new, world.rt.clock.now())
        return str(owned.template.id)


@object_for("team_id")
async def a_team(world: World) -> str:
    """The owner and the manager manage it; the former member has left."""
    async with world.rt.db.write() as session:
        name = f"object-{secrets.token_hex(6)}"
        team = await make.team(
            session, world.rt, world.owner, world.member, world.former, name=name
        )
        await make.join(session, world.rt, team, world.manager, TeamRole.MANAGER)
        await make.leave(session, world.rt, team, world.former)
        return str(team.id)


@object_for("/app/teams/{team_id}/keys/{key_id}")
@object_for("/api/v1/teams/{team_id}/keys/{key_id}")
async def a_key_of_the_team(world: World) -> str:
    async with world.rt.db.write() as session:
        team = await session.get_one(Team, int(world.made["team_id"]))
        await make.team_key(session, world.rt, team, world.owner)
        newest = select(ApiKey.id).order_by(ApiKey.id.desc()).limit(1)
        return str(await session.scalar(newest))


@object_for("/app/teams/{team_id}/members/{user_id}")
@object_for("/api/v1/teams/{team_id}/members/{user_id}")
async def another_member(world: World) -> str:
    async with world.rt.db.write() as session:
        person = await make.person(session, world.rt, f"object-{secrets.token_hex(6)}")
        team = await session.get_one(Team, int(world.made["team_id"]))
        await make.join(session, world.rt, team, person)
        return str(person.id)


@object_for("host", absent="absent.example")
async def a_domain(world: World) -> str:
    """One for the team that co-owns."""
    host = f"object-{secrets.token_hex(6)}.example"
    async with world.rt.db.write() as session:
        await make.domain(session, world.rt, host, creators="team", team=world.crew.slug)
    return host


@object_for("/app/admin/domains/{host}/enable#host", absent="absent.example")
async def a_disabled_domain(world: World) -> str:
    host = await a_domain(world)
    async with world.rt.db.write() as session:
        await make.disable_domain(session, world.rt, host)
    return host


@object_for("/app/links/{link_id}/invitations/{invitation_id}")
@object_for("/api/v1/links/{link_id}/invitations/{invitation_id}")
async def an_invitation_to_the_link(world: World) -> str:
    """One that its owner made."""
    return await _invitation(world, int(world.made["link_id"]), world.owner, world.other)


@object_for("invitation_id")
async def an_invitation_of_mine(world: World) -> str:
    """Somebody else asks the owner."""
    async with world.rt.db.write() as session:
        link = await make.link(
            session, world.rt, world.other, name=f"object-{secrets.token_hex(6)}"
        )
    return await _invitation(world, link.id, world.other, world.owner)


async def _invitation(world: World, link_id: int, inviter: User, invitee: User) -> str:
    async with world.rt.db.write() as session:
        now = world.rt.clock.now()
        made = await links.invite_owner(
            session, Standing(inviter.id), link_id, invitee.email, InvitedRole.OWNER, now
        )
        assert isinstance(made, LinkInvitation)
        return str(made.id)


@object_for("/app/links/{link_id}/names/{name}", absent="no-such-name")
@object_for("/api/v1/links/{link_id}/names/{name}", absent="no-such-name")
async def a_name_of_the_link(world: World) -> str:
    async with world.rt.db.read() as session:
        return (await list_names(session, NameKind.LINK, [int(world.made["link_id"])]))[
            int(world.made["link_id"])
        ][0]


@object_for("/app/links/{link_id}/owners/{user_id}")
@object_for("/api/v1/links/{link_id}/owners/{user_id}")
async def a_co_owner(world: World) -> str:
    return str(world.co_owner.id)


@object_for("/app/links/{link_id}/shares/{user_id}")
@object_for("/api/v1/links/{link_id}/shares/{user_id}")
async def a_recipient(world: World) -> str:
    return str(world.recipient.id)


@object_for("/api/v1/admin/users/{user_id}")
@object_for("/app/admin/people/{user_id}")
async def somebody_else(world: World) -> str:
    async with world.rt.db.write() as session:
        return str((await make.person(session, world.rt, f"object-{secrets.token_hex(6)}")).id)


@object_for("/app/admin/people/{user_id}/{step}", absent="suspend")
async def a_step_with_somebody(world: World) -> str:
    return "suspend"


@object_for("barred_id")
async def a_deleted_account(world: World) -> str:
    async with world.rt.db.write() as session:
        await tombstones.add_tombstone(
            session, world.rt, make.somebody(world.rt, f"gone-{secrets.token_hex(6)}")
        )
        newest = select(AccountTombstone.id).order_by(AccountTombstone.id.desc())
        return str(await session.scalar(newest.limit(1)))


@object_for("issuer_name", absent="nobody")
async def a_provider(world: World) -> str:
    return "work"


@object_for("version", absent="99")
async def a_version(world: World) -> str:
    return "1"


@object_for("number", absent="99")
async def a_rule_of_a_link(world: World) -> str:
    return "1"


@object_for("step", absent="disable")
async def a_step(world: World) -> str:
    return "disable"


@object_for("/api/v1/names/{name}", absent="another-free-name")
async def a_free_name(world: World) -> str:
    return "a-free-name"


@object_for("list_id")
async def a_draft(world: World) -> str:
    return await _list(world, "https://example.com/entry")


@object_for("/api/v1/lists/{list_id}/order#list_id")
@object_for("/app/lists/{list_id}/order#list_id")
async def an_empty_draft(world: World) -> str:
    """Whose only order is none."""
    return await _list(world)


@object_for("/api/v1/lists/{list_id}/editions#list_id")
@object_for("/app/lists/{list_id}/editions#list_id")
async def a_published_list(world: World) -> str:
    list_id = await _list(world, "https://example.com/entry")
    async with world.rt.db.write() as session:
        await lists.publish_list(
            session, make.space(world.rt), ListMaker(world.owner.id), int(list_id)
        )
    return list_id


@object_for("/api/v1/lists/{list_id}/undo#list_id")
@object_for("/api/v1/lists/{list_id}/release#list_id")
@object_for("/app/lists/{list_id}/undo#list_id")
@object_for("/app/lists/{list_id}/release#list_id")
@object_for("/api/v1/admin/lists/{list_id}/undo#list_id")
@object_for("/app/admin/lists/{list_id}/undo#list_id")
async def a_deleted_list(world: World) -> str:
    list_id = await a_published_list(world)
    async with world.rt.db.write() as session:
        await lists.delete_list(
            session, world.rt.ids, ListMaker(world.owner.id), int(list_id), world.rt.clock.now()
        )
    return list_id


@object_for("report_id")
async def a_report(world: World) -> str:
    link_id = await _link(world)
    async with world.rt.db.write() as session:
        name = (await list_names(session, NameKind.LINK, [link_id]))[link_id][0]
        report = await reports.file_report(
            session, world.rt, "network", ReportCreate(target=name, reason=ReportReason.SPAM)
        )
        assert report is not None
        return str(report.id)


@object_for("action", absent="dismiss")
async def an_action(world: World) -> str:
    return "dismiss"


@object_for("slug", absent="no-such-list")
async def a_slug(world: World) -> str:
    list_id = int(await a_published_list(world))
    async with world.rt.db.read() as session:
        return (await session.get_one(LinkList, list_id)).slug or ""


@object_for("entry_id")
async def an_entry(world: World) -> str:
    async with world.rt.db.read() as session:
        return str((await list_entries(session, int(world.made["list_id"])))[0].entry.id)


@object_for("/api/v1/lists/{list_id}/entries/{entry_id}/restore#entry_id")
@object_for("/app/lists/{list_id}/entries/{entry_id}/restore#entry_id")
async def a_removed_entry(world: World) -> str:
    number = await an_entry(world)
    async with world.rt.db.write() as session:
        owner, list_id = ListMaker(world.owner.id), int(world.made["list_id"])
        await remove_entry(session, owner, list_id, int(number), world.rt.clock.now())
    return number


@object_for("section_id")
async def a_section(world: World) -> str:
    async with world.rt.db.write() as session:
        owner, list_id = ListMaker(world.owner.id), int(world.made["list_id"])
        new = SectionCreate(title="Later")
        return str((await lists.add_section(session, make.space(world.rt), owner, list_id, new)).id)


@object_for("/app/lists/{list_id}/sections/{section_id}/{step}", absent="up")
@object_for("/app/lists/{list_id}/entries/{entry_id}/{step}", absent="up")
async def a_direction(world: World) -> str:
    return "up"


@object_for("/api/docs/{section}", absent="nothing")
async def a_section_of_the_api(world: World) -> str:
    return "keys"


async def _list(world: World, *urls: str) -> str:
    async with world.rt.db.write() as session:
        return str((await make.list_of(session, world.rt, ListMaker(world.owner.id), *urls)).id)


@object_for("dimension", absent="countries")
async def a_dimension(world: World) -> str:
    return "countries"


@object_for("tag_id")
async def a_personal_tag(world: World) -> str:
    """The owner's own; another was merged into it, so there is something to undo and an alias."""
    async with world.rt.db.write() as session:
        await session.execute(delete(TagAlias).where(TagAlias.key == "merged"))
        names, now = [f"object {secrets.token_hex(6)}", "merged"], world.rt.clock.now()
        tags = await personal_tags.ensure_tags(session, world.rt.ids, world.owner.id, names, now)
        target, source = tags[names[0]], tags["merged"]
        await tag_changes.merge_tags(
            session, world.rt.ids, world.owner.id, target.id, [source.id], now
        )
        return str(target.id)


@object_for("/app/tags/{tag_id}")
async def a_shared_tag(world: World) -> str:
    await _link(world)
    async with world.rt.db.read() as session:
        return str(
            await session.scalar(
                select(Tag.id).where(Tag.key == "object", Tag.space == SHARED_SPACE)
            )
        )


@object_for("import_id")
async def an_import(world: World) -> str:
    async with world.rt.db.write() as session:
        one = await create_import(session, world.rt, world.owner.id, "refract", None)
        await add_import_rows(session, one, [Bookmark("item 1", "A thought.")])
        return str(one.id)


@object_for("/api/v1/links/imports/{import_id}")
@object_for("/app/links/imports/{import_id}")
async def an_import_of_links(world: World) -> str:
    async with world.rt.db.write() as session:
        one = await create_import(
            session, world.rt, world.owner.id, "csv", None, ImportSubject.LINKS
        )
        one.dry_run, one.status = True, ImportStatus.DONE
        return str(one.id)


@object_for("rule_id")
async def a_rule(world: World) -> str:
    async with world.rt.db.write() as session:
        return str(
            (
                await items.add_rule(
                    session,
                    world.rt,
                    world.owner.id,
                    RuleIn(pattern="example.com", tags=["object"]),
                )
            ).id
        )


@object_for("item_id")
async def an_item(world: World) -> str:
    """Described, and waiting for its owner's word."""
    return str(await _item(world, failed=False))


@object_for("/api/v1/items/{item_id}/retry#item_id")
async def a_failed_item(world: World) -> str:
    return str(await _item(world, failed=True))


@object_for("/api/v1/items/{item_id}/restore#item_id")
@object_for("/api/v1/items/{item_id}/erase#item_id")
@object_for("/app/library/{item_id}/restore#item_id")
@object_for("/app/library/{item_id}/erase#item_id")
async def a_discarded_item(world: World) -> str:
    number = await _item(world, failed=False)
    async with world.rt.db.write() as session:
        await items.discard_item(await items.lock_item(session, world.rt, world.owner.id, number))
    return str(number)


async def _item(world: World, *, failed: bool) -> int:
    async with world.rt.db.write() as session:
        item = (
            await items.capture_item(session, world.rt, world.owner, ItemCreate(text="A thought."))
        ).item
        if failed:
            await items.mark_failed(session, world.rt, item, "The page couldn't be reached.")
        else:
            await items.apply_proposal(
                session, world.rt, item, EnrichmentProposal("A thought", None, []), final=True
            )
        return item.id


@object_for("/api/v1/admin/users/{user_id}/quota#user_id")
async def a_person(world: World) -> str:
    return str(world.owner.id)


@object_for("domain", absent="not-blocked.example")
async def a_blocked_domain(world: World) -> str:
    async with world.rt.db.write() as session:
        await block_domain(
            session, "blocked.example", reason="test", by=None, at=world.rt.clock.now()
        )
    return "blocked.example"


@object_for("job_id")
async def a_dead_job(world: World) -> str:
    now = world.rt.clock.now()
    async with world.rt.db.write() as session:
        job = Job(
            id=world.rt.ids.next_id(),
            kind="a.kind",
            payload={},
            status=JobStatus.DEAD,
            run_at=now,
            created_at=now,
            finished_at=now,
        )
        session.add(job)
        await session.flush()
        return str(job.id)


def parameters_of(path: str) -> list[str]:
    return [one.partition(":")[0] for one in re.findall(r"{([^}]+)}", path)]


def kind_of(path: str, parameter: str) -> Kind:
    """The most particular maker there is for this parameter of this path."""
    bare = re.sub(r":\w+}", "}", path)  # without converters, as in `{name:path}`
    up_to_here = bare[: bare.index("{" + parameter) + len(parameter) + 2]
    if (
        kind := OBJECTS.get(f"{path}#{parameter}")
        or OBJECTS.get(up_to_here)
        or OBJECTS.get(parameter)
    ):
        return kind
    advice = (
        f'Nothing says how to make "{{{parameter}}}" of {path}: add @object_for("{parameter}") in'
        " tests/access/objects.py."
    )
    raise LookupError(advice)


async def real_path(world: World, path: str) -> str:
    """The path with an object of the owner's behind every parameter, made from left to right."""
    world.made.clear()
    for parameter in parameters_of(path):
        world.made[parameter] = await kind_of(path, parameter).make(world)
    return _filled(path, world.made)


def absent_path(path: str) -> str:
    """The path with parameters that look alike and lead nowhere."""
    return _filled(
        path, {parameter: kind_of(path, parameter).absent for parameter in parameters_of(path)}
    )


def _filled(path: str, values: dict[str, str]) -> str:
    return re.sub(r"{([^}:]+)[^}]*}", lambda found: values[found[1]], path)
