"""Provocations of accounts, keys, sessions and administration."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from sqlalchemy import delete, select, update

from refract.identity.invitations.models import AccountInvitation
from refract.identity.invitations.service import MAX_OPEN_INVITATIONS
from refract.identity.models import User, UserRole
from refract.jobs.models import Job, JobStatus
from refract.links import service as links
from refract.links.access import LinkCaller as LinkActor
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from refract.lists.models import LinkList
from refract.reports import service as reports
from refract.reports.models import ReportReason
from refract.reports.schemas import ReportCreate
from tests import make
from tests.access.objects import a_published_list
from tests.client import by_cookie
from tests.errors.provoking import provokes, sends
from tests.errors.site import Asking, unique

_PERSON = "/admin/users/{user_id}"
_DECIDE = "POST /admin/reports/{report_id}/{action}"

sends(
    "INVALID_KEY_EXPIRY", "POST /keys", json={"name": "test", "expires_at": "2020-01-01T00:00:00Z"}
)
sends("SCOPE_NOT_ALLOWED", "POST /keys", json={"name": "test", "scopes": ["admin"]})
sends("NEW_OWNER_REQUIRED", f"DELETE {_PERSON}", query={"links": "reassign"})


sends("EMAIL_TAKEN", "POST /admin/invitations", json={"email": "mara@example.com"})


@provokes("INVITATIONS_DISABLED", "POST /admin/invitations")
async def invitation_where_a_provider_knows_everybody(asking: Asking) -> None:
    await asking.ask(site=asking.site.with_settings(signin_links="off"), json={"name": "Eve"})


@provokes("OPEN_INVITATION_LIMIT", "POST /admin/invitations")
async def one_invitation_too_many(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        open_ones = [
            AccountInvitation(
                id=asking.rt.ids.next_id(),
                inviter_id=asking.world.admin.id,
                token_hash=unique("open"),
                name="",
                email="",
                role="user",
                created_at=asking.rt.clock.now(),
                expires_at=asking.rt.clock.now() + timedelta(days=1),
            )
            for _ in range(MAX_OPEN_INVITATIONS)
        ]
        session.add_all(open_ones)
    await asking.ask(json={"name": "Eve"})
    async with asking.rt.db.write() as session:
        numbers = [invitation.id for invitation in open_ones]
        await session.execute(delete(AccountInvitation).where(AccountInvitation.id.in_(numbers)))


@provokes("ADMIN_SCOPE_NOT_ALLOWED", "POST /keys")
async def admin_scope_for_a_user(asking: Asking) -> None:
    async with asking.rt.db.write() as session:
        browser = by_cookie(asking.rt, await make.cookie(session, asking.rt, asking.world.owner))
    await asking.ask(headers=browser, json={"name": "test", "scopes": ["admin"]})


@asynccontextmanager
async def only_administrator(asking: Asking) -> AsyncIterator[None]:
    """Let the world have one administrator for as long as the block runs."""
    async with asking.rt.db.write() as session:
        others = list(
            await session.scalars(
                select(User.id).where(User.role == UserRole.ADMIN, User.id != asking.world.admin.id)
            )
        )
        await session.execute(update(User).where(User.id.in_(others)).values(role=UserRole.USER))
    yield
    async with asking.rt.db.write() as session:
        await session.execute(update(User).where(User.id.in_(others)).values(role=UserRole.ADMIN))


@provokes("LAST_ADMIN", "DELETE /me")
async def last_administrator_who_leaves(asking: Asking) -> None:
    async with only_administrator(asking):
        await asking.ask(headers=asking.site.keys["admin"])


@provokes("LAST_ADMIN", f"PATCH {_PERSON}", f"DELETE {_PERSON}")
async def last_administrator_who_is_removed(asking: Asking) -> None:
    body = {"json": {"status": "suspended"}} if asking.method == "PATCH" else {}
    async with only_administrator(asking):
        await asking.ask(await asking.target(user_id=str(asking.world.admin.id)), **body)


@provokes("JOB_NOT_DEAD", "POST /admin/jobs/{job_id}/retry")
async def job_that_waits(asking: Asking) -> None:
    now = asking.rt.clock.now()
    async with asking.rt.db.write() as session:
        job = Job(
            id=asking.rt.ids.next_id(),
            kind="a.kind",
            payload={},
            status=JobStatus.PENDING,
            run_at=now,
            created_at=now,
        )
        session.add(job)
    await asking.ask(await asking.target(job_id=str(job.id)))


async def report_of(asking: Asking, name: str) -> str:
    async with asking.rt.db.write() as session:
        report = await reports.file_report(
            session, asking.rt, "network", ReportCreate(target=name, reason=ReportReason.SPAM)
        )
    assert report is not None
    return str(report.id)


async def reported_link(asking: Asking, owner: User) -> tuple[int, str]:
    async with asking.rt.db.write() as session:
        link = await make.link(session, asking.rt, owner, name=(name := unique()))
    return link.id, await report_of(asking, name)


async def reported_list(asking: Asking) -> tuple[int, str]:
    list_id = int(await a_published_list(asking.world))
    async with asking.rt.db.read() as session:
        slug = (await session.get_one(LinkList, list_id)).slug
    return list_id, await report_of(asking, slug or "")


@provokes("ACTION_NOT_APPLICABLE", _DECIDE)
async def link_that_is_unpublished(asking: Asking) -> None:
    _, report_id = await reported_link(asking, asking.world.owner)
    await asking.ask(await asking.target(report_id=report_id, action="unpublish-list"))


@provokes("INVALID_DOMAIN", _DECIDE)
async def block_of_no_domain(asking: Asking) -> None:
    _, report_id = await reported_link(asking, asking.world.owner)
    await asking.ask(
        await asking.target(report_id=report_id, action="block-domain"),
        json={"domain": "not a domain"},
    )


@provokes("INVALID_STATE_TRANSITION", _DECIDE)
async def deleted_link_that_is_disabled(asking: Asking) -> None:
    link_id, report_id = await reported_link(asking, asking.world.owner)
    async with asking.rt.db.write() as session:
        await links.delete_link(
            session, LinkActor(asking.world.owner.id), link_id, asking.rt.clock.now()
        )
    await asking.ask(await asking.target(report_id=report_id, action="disable-link"))


@provokes("LIST_NOT_FOUND", _DECIDE)
async def deleted_list_that_is_unpublished(asking: Asking) -> None:
    list_id, report_id = await reported_list(asking)
    async with asking.rt.db.write() as session:
        await lists.delete_list(
            session, asking.rt.ids, ListMaker(asking.world.owner.id), list_id, asking.rt.clock.now()
        )
    await asking.ask(await asking.target(report_id=report_id, action="unpublish-list"))


@provokes("LINK_NOT_FOUND", _DECIDE)
async def purged_link_that_is_disabled(asking: Asking) -> None:
    link_id, report_id = await reported_link(asking, asking.world.owner)
    async with asking.rt.db.write() as session:
        await links.delete_link(
            session, LinkActor(asking.world.owner.id), link_id, asking.rt.clock.now()
        )
        await links.purge_links(session, asking.rt.clock.now(), timedelta())
    await asking.ask(await asking.target(report_id=report_id, action="disable-link"))


@provokes("LAST_ADMIN", _DECIDE)
async def last_administrator_who_is_suspended(asking: Asking) -> None:
    _, report_id = await reported_link(asking, asking.world.admin)
    async with only_administrator(asking):
        await asking.ask(await asking.target(report_id=report_id, action="suspend-owner"))


@provokes("NEW_OWNER_REQUIRED", "DELETE /me")
async def heir_that_is_no_team(asking: Asking) -> None:
    await asking.ask(query={"heir": "nobody"})


@provokes("USER_NOT_FOUND", "DELETE /me")
async def heir_who_is_not_there(asking: Asking) -> None:
    await asking.ask(query={"heir": "nobody@example.com"})


@provokes("AMBIGUOUS_EMAIL", "DELETE /me")
async def heir_who_is_two(asking: Asking) -> None:
    email = f"{unique('twin')}@example.com"
    async with asking.rt.db.write() as session:
        for _ in range(2):
            await make.person(session, asking.rt, unique("twin"), email=email)
    await asking.ask(query={"heir": email})
