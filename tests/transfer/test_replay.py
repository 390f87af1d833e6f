"""A restored backup revives nothing that was revoked or deleted since.

The finding: there was no list of deletions to replay (security findings, "Low").
"""

import json
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from refract.admin import service as admin
from refract.admin.schemas import LinkDisposition, PersonPatch
from refract.core.clock import ManualClock
from refract.core.db.session import Database, ReadSession, WriteSession
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity import audit, keys, tombstones
from refract.identity.errors import AccountBarred
from refract.identity.jobs import log_revocations
from refract.identity.models import AccountTombstone, AuditEntry, User, UserStatus
from refract.identity.payloads import LogRevocations
from refract.identity.personal_data import PersonalDataHook
from refract.identity.revocation_log import append_revocations, get_log_path, read_revocations
from refract.identity.sessions import create_session, find_session
from refract.jobs.models import Job
from refract.links.models import Link, LinkOwner
from refract.registry import list_personal_data_hooks, list_team_hooks
from refract.teams import service as teams
from refract.teams.hooks import TeamHook
from refract.teams.models import TeamMember, TeamRole
from refract.teams.queries import TeamCaller
from refract.transfer.backup import create_backup
from refract.transfer.replay import RevocationListMissing, replay_revocations
from tests import make
from tests.transfer.backups import NOW, restore_backup, silent


def _hooks() -> tuple[Sequence[PersonalDataHook], Sequence[TeamHook]]:
    return list_personal_data_hooks(), list_team_hooks()


async def test_keys_sessions_and_people_stay_revoked(
    rt: Runtime, elsewhere: tuple[Settings, Database], tmp_path: Path
) -> None:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        eve = await make.person(session, rt, "eve")
        mal = await make.person(session, rt, "mal")
        bob = await make.person(session, rt, "bob")
        left = await make.link(session, rt, eve, name="left")
        passed = await make.link(session, rt, bob, name="passed")
        old, clear = await keys.create_key(session, rt, root, "old", [])
        _, kept = await keys.create_key(session, rt, root, "kept", [])
        cookie = await create_session(session, rt, root, "Firefox")
    file = tmp_path / "backup.zip"
    await create_backup(rt.settings, rt.db, file, NOW, silent)

    async with rt.db.write() as session:
        await keys.revoke_key(session, root, old.id)
        await audit.record_event(session, rt, "key.revoked", actor=root, target=old.key_prefix)
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="suspended"))
        await admin.delete_person(
            session,
            rt,
            root,
            eve.id,
            list_personal_data_hooks(),
            links=LinkDisposition.DELETE,
            heir=None,
        )
        await admin.delete_person(
            session,
            rt,
            root,
            bob.id,
            list_personal_data_hooks(),
            links=LinkDisposition.REASSIGN,
            heir=str(root.id),
        )
    async with rt.db.read() as session:
        assert (
            await session.scalar(
                select(func.count()).select_from(Job).where(Job.kind == LogRevocations.kind)
            )
            == 4
        )
    await log_revocations(rt, LogRevocations())
    assert await append_revocations(rt) == 0  # and not twice

    settings, db = elsewhere
    await restore_backup(settings, db, file)
    other = Runtime(settings=settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
    async with db.read() as session:
        assert (
            await keys.find_key(session, clear, rt.clock.now()) is not None
        )  # what the backup holds
        assert await find_session(session, other, cookie) is None
    replayed = await replay_revocations(
        other, list_personal_data_hooks(), list_team_hooks(), [get_log_path(rt.settings)]
    )

    assert replayed == (1, 1, 2, 2, 0, 0, 0)
    async with db.read() as session:
        assert await keys.find_key(session, clear, rt.clock.now()) is None
        assert await keys.find_key(session, kept, rt.clock.now()) is not None
        assert (await session.get_one(User, mal.id)).status == UserStatus.SUSPENDED
        for gone in (eve, bob):
            person = await session.get_one(User, gone.id)
            assert (person.status, person.email) == (UserStatus.DELETED, "")
        assert (await session.get_one(Link, left.id)).destination == "https://erased.invalid/"
        assert (await session.get_one(Link, passed.id)).destination == passed.destination
        assert list(
            await session.scalars(select(LinkOwner.user_id).where(LinkOwner.link_id == passed.id))
        ) == [root.id]
    assert await replay_revocations(other, *_hooks()) == (
        *(0, 0, 0, 0, 0, 0, 0),
    )  # its own list knows by now


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_person_let_in_again_stays_in_and_a_torn_line_is_no_line(rt: Runtime) -> None:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        mal = await make.person(session, rt, "mal")
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="suspended"))
    await append_revocations(rt)
    path = get_log_path(rt.settings)
    with path.open("a") as file:
        file.write('{"at": "2026')  # killed while writing
    async with rt.db.write() as session:
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="active"))
    assert await append_revocations(rt) == 1

    assert read_revocations(path)["person", mal.id, None].state == "active"
    assert await replay_revocations(rt, *_hooks()) == (0, 0, 0, 0, 0, 0, 0)
    assert "mal@" not in path.read_text()
    assert json.loads(path.read_text().splitlines()[0])["subject"] == "person"
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(RevocationListMissing):
        await replay_revocations(
            rt, list_personal_data_hooks(), list_team_hooks(), [path.with_name("absent")]
        )


async def test_who_left_a_team_stays_out_of_it(
    rt: Runtime, elsewhere: tuple[Settings, Database], clock: ManualClock, tmp_path: Path
) -> None:
    """Nor does a team that was deleted have members, or keys, again."""
    async with rt.db.write() as session:
        ada, bob, cleo, dora = [
            await make.person(session, rt, name) for name in ("ada", "bob", "cleo", "dora")
        ]
        crew = await make.team(session, rt, ada, bob, cleo, dora)
        gone = await make.team(session, rt, bob, dora, name="Gone")
        key = await make.team_key(session, rt, gone, bob)
        link = await make.link(session, rt, ada, team="crew", visibility="team")
    file = tmp_path / "backup.zip"
    await create_backup(rt.settings, rt.db, file, NOW, silent)

    for name in ("left", "came back"):
        clock.advance(60)
        async with rt.db.write() as session:
            if name == "left":
                for user in (bob, cleo):
                    await make.leave(session, rt, crew, user)
                team_hooks = list_team_hooks()
                await teams.delete_team(session, TeamCaller(bob.id), gone.id, team_hooks, rt)
            else:
                await make.join(session, rt, crew, cleo)
        await log_revocations(rt, LogRevocations())
    assert await append_revocations(rt) == 0

    settings, db = elsewhere
    await restore_backup(settings, db, file)
    other = Runtime(settings=settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
    hooks, team_hooks = list_personal_data_hooks(), list_team_hooks()
    replayed = await replay_revocations(other, hooks, team_hooks, [get_log_path(rt.settings)])

    assert replayed.members == 4  # Bob; and Bob, Dora and the account of the keys
    async with db.read() as session:
        owners = select(LinkOwner.user_id).where(LinkOwner.link_id == link.id)
        assert set(await session.scalars(owners)) == {ada.id, cleo.id, dora.id}
        members = select(TeamMember.user_id).where(TeamMember.team_id == crew.id)
        assert set(await session.scalars(members)) == {ada.id, cleo.id, dora.id}
        assert await keys.find_key(session, key, rt.clock.now()) is None
    again = await replay_revocations(other, hooks, team_hooks)
    assert again.members == 0


async def test_who_was_demoted_manages_no_team_again(
    rt: Runtime, elsewhere: tuple[Settings, Database], clock: ManualClock, tmp_path: Path
) -> None:
    """Nor does who left as a manager and came back as a member. Later promotions stand."""
    async with rt.db.write() as session:
        ada, *others = [
            await make.person(session, rt, name) for name in ("ada", "bob", "cleo", "dora")
        ]
        bob, cleo, dora = others
        crew = await make.team(session, rt, ada)
        for user in others:
            await make.join(session, rt, crew, user, TeamRole.MANAGER)
    file = tmp_path / "backup.zip"
    await create_backup(rt.settings, rt.db, file, NOW, silent)

    for user, role in ((bob, TeamRole.MEMBER), (dora, TeamRole.MEMBER), (dora, TeamRole.MANAGER)):
        clock.advance(60)
        async with rt.db.write() as session:
            await teams.change_role(session, TeamCaller(ada.id), crew.id, user.id, role, rt)
        await log_revocations(rt, LogRevocations())
    async with rt.db.write() as session:
        await make.leave(session, rt, crew, cleo)
        await make.join(session, rt, crew, cleo)
    await log_revocations(rt, LogRevocations())
    assert await append_revocations(rt) == 0

    settings, db = elsewhere
    await restore_backup(settings, db, file)
    other = Runtime(settings=settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
    replayed = await replay_revocations(other, *_hooks(), [get_log_path(rt.settings)])
    assert (replayed.managers, replayed.members) == (2, 0)
    async with db.read() as session:
        rows = await session.scalars(select(TeamMember))
        roles = {row.user_id: row.role for row in rows}
    assert roles == {ada.id: "manager", bob.id: "member", cleo.id: "member", dora.id: "manager"}
    assert (await replay_revocations(other, *_hooks())).managers == 0


async def test_a_suspension_is_logged_with_its_own_time(rt: Runtime) -> None:
    """A later time than that of the activation after it left an active person suspended."""
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        mal = await make.person(session, rt, "mal")
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="suspended"))
    await append_revocations(rt)
    await append_revocations(rt)

    async with rt.db.read() as session:
        (changed_at,) = await session.scalars(
            select(AuditEntry.at).where(AuditEntry.action == "status.changed")
        )
    (line,) = get_log_path(rt.settings).read_text().splitlines()
    assert datetime.fromisoformat(json.loads(line)["at"]) == changed_at


async def test_whom_a_deletion_bars_stays_barred_and_a_demoted_administrator_stays_one_no_more(
    rt: Runtime, elsewhere: tuple[Settings, Database], tmp_path: Path
) -> None:
    """Also accounts that the backup lacks; the last decision counts, in both directions."""
    async with rt.db.write() as session:
        root, dem, dora = [await make.admin(session, rt, name) for name in ("root", "dem", "dora")]
        people = {name: await make.person(session, rt, name) for name in ("eve", "back", "was")}
        was_barred = await _delete(session, rt, root, people["was"])
    file = tmp_path / "backup.zip"
    await create_backup(rt.settings, rt.db, file, NOW, silent)

    async with rt.db.write() as session:
        people["late"] = await make.person(session, rt, "late")
        for name in ("eve", "late"):
            await _delete(session, rt, root, people[name])
        allowed = await _delete(session, rt, root, people["back"])
        for person in (dem, dora):
            await admin.change_person(session, rt, root, person.id, PersonPatch(role="user"))
    await append_revocations(rt)
    async with rt.db.write() as session:
        for tombstone in (allowed, was_barred):
            await admin.allow_barred(session, rt, root, tombstone)
        await admin.change_person(session, rt, root, dora.id, PersonPatch(role="admin"))
    await append_revocations(rt)
    assert await append_revocations(rt) == 0
    assert "eve" not in get_log_path(rt.settings).read_text()

    settings, db = elsewhere
    await restore_backup(settings, db, file)
    other = Runtime(settings=settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
    assert await replay_revocations(
        other, list_personal_data_hooks(), list_team_hooks(), [get_log_path(rt.settings)]
    ) == (0, 0, 2, 2, 1, 0, 0)

    for name, barred in {"eve": True, "late": True, "back": False, "was": False}.items():
        async with db.read() as session:
            assert await _is_barred(session, other, name) is barred, name
    async with db.read() as session:
        roles = [(await session.get_one(User, person.id)).role for person in (root, dem, dora)]
    assert roles == ["admin", "user", "admin"]
    assert await replay_revocations(other, *_hooks()) == (0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_restored_database_that_was_not_brought_up_to_date_takes_nothing_back(
    rt: Runtime, elsewhere: tuple[Settings, Database], clock: ManualClock, tmp_path: Path
) -> None:
    """After a restore by other means, the log still suspends and bars, and stays valid."""
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        mal, eve = [await make.person(session, rt, name) for name in ("mal", "eve")]
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="suspended"))
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="active"))
    file = tmp_path / "backup.zip"
    await create_backup(rt.settings, rt.db, file, NOW, silent)
    clock.advance(60)
    async with rt.db.write() as session:
        late = await make.person(session, rt, "late")
        for person in (mal, late):
            await admin.change_person(session, rt, root, person.id, PersonPatch(status="suspended"))
        await _delete(session, rt, root, eve)
    await append_revocations(rt)

    settings, db = elsewhere
    await restore_backup(settings, db, file)
    other = Runtime(settings=settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
    get_log_path(settings).parent.mkdir(exist_ok=True)
    shutil.copy(get_log_path(rt.settings), get_log_path(settings))
    assert await append_revocations(other) == 0

    assert await replay_revocations(other, *_hooks()) == (0, 1, 1, 1, 0, 0, 0)
    states = {key: entry.state for key, entry in read_revocations(get_log_path(settings)).items()}
    assert states == {
        ("person", mal.id, None): "suspended", ("person", late.id, None): "suspended",
        ("person", eve.id, None): "deleted", ("ban", eve.id, None): "barred",
    }  # fmt: skip


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_of_several_lists_the_newest_line_counts(
    rt: Runtime, clock: ManualClock, tmp_path: Path
) -> None:
    async with rt.db.write() as session:
        root, mal = await make.admin(session, rt), await make.person(session, rt, "mal")
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="suspended"))
    await append_revocations(rt)
    old = Path(shutil.copy(get_log_path(rt.settings), tmp_path / "old.jsonl"))
    clock.advance(60)
    async with rt.db.write() as session:
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="active"))
    await append_revocations(rt)

    assert await replay_revocations(rt, *_hooks(), [old]) == (0, 0, 0, 0, 0, 0, 0)


async def _delete(session: WriteSession, rt: Runtime, by: User, user: User) -> int:
    """Delete an account and return the id of its tombstone."""
    await admin.delete_person(
        session,
        rt,
        by,
        user.id,
        list_personal_data_hooks(),
        links=LinkDisposition.DELETE,
        heir=None,
    )
    return (
        await session.scalars(
            select(AccountTombstone.id).where(AccountTombstone.user_id == user.id)
        )
    ).one()


async def _is_barred(session: ReadSession, rt: Runtime, name: str) -> bool:
    try:
        await tombstones.check_not_barred(session, rt, "https://id.test", name)
    except AccountBarred:
        return True
    return False
