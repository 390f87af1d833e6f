"""A restored backup revives nothing that was revoked or erased since (security findings, "Low": no list of erasures to replay)."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from refract.admin import service as admin
from refract.admin.parts import PARTS
from refract.admin.schemas import Links, PersonPatch
from refract.core.db import Database
from refract.core.runtime import Runtime
from refract.core.settings import Settings
from refract.identity import audit, keys
from refract.identity.jobs import log_revocations
from refract.identity.models import User, UserStatus
from refract.identity.payloads import LogRevocations
from refract.identity.revocation_log import append_revocations, log_path, read_log
from refract.identity.sessions import begin_session, find_session
from refract.jobs.models import Job
from refract.links.models import Link, LinkOwner
from refract.transfer.backup import back_up
from refract.transfer.replay import ReplayListAbsent, replay_revocations
from refract.transfer.restore import restore
from tests import make
from tests.transfer.test_backup import elsewhere, silent

__all__ = ["elsewhere"]
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


async def test_keys_sessions_and_people_stay_revoked(rt: Runtime, elsewhere: tuple[Settings, Database], tmp_path: Path) -> None:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        eve = await make.person(session, rt, "eve")
        mal = await make.person(session, rt, "mal")
        bob = await make.person(session, rt, "bob")
        left = await make.link(session, rt, eve, name="left")
        passed = await make.link(session, rt, bob, name="passed")
        old, clear = await keys.create_key(session, rt, root, "old", [])
        _, kept = await keys.create_key(session, rt, root, "kept", [])
        cookie = await begin_session(session, rt, root, "Firefox")
    file = tmp_path / "backup.zip"
    await back_up(rt.settings, rt.db, file, NOW, silent)

    async with rt.db.write() as session:
        await keys.revoke_key(session, root, old.id)
        await audit.note(session, rt, "key.revoked", actor=root, target=old.key_prefix)
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="suspended"))
        await admin.delete_person(session, rt, root, eve.id, PARTS, links=Links.DELETE, heir_id=None)
        await admin.delete_person(session, rt, root, bob.id, PARTS, links=Links.REASSIGN, heir_id=root.id)
    async with rt.db.read() as session:
        assert await session.scalar(select(func.count()).select_from(Job).where(Job.kind == LogRevocations.kind)) == 4
    await log_revocations(rt, LogRevocations())
    assert await append_revocations(rt) == 0  # and not twice

    settings, db = elsewhere
    await restore(settings, db, file, silent)
    other = Runtime(settings=settings, db=db, clock=rt.clock, ids=rt.ids, secret=rt.secret)
    async with db.read() as session:
        assert await keys.find_by_key(session, clear, rt.clock.now()) is not None  # what the backup holds
        assert await find_session(session, other, cookie) is None
    replayed = await replay_revocations(other, [log_path(rt.settings)])

    assert replayed == (1, 1, 2)
    async with db.read() as session:
        assert await keys.find_by_key(session, clear, rt.clock.now()) is None
        assert await keys.find_by_key(session, kept, rt.clock.now()) is not None
        assert (await session.get_one(User, mal.id)).status == UserStatus.SUSPENDED
        for gone in (eve, bob):
            person = await session.get_one(User, gone.id)
            assert (person.status, person.email) == (UserStatus.DELETED, "")
        assert (await session.get_one(Link, left.id)).destination == "https://erased.invalid/"
        assert (await session.get_one(Link, passed.id)).destination == passed.destination
        assert list(await session.scalars(select(LinkOwner.user_id).where(LinkOwner.link_id == passed.id))) == [root.id]
    assert await replay_revocations(other) == (0, 0, 0)  # its own list knows by now


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_person_let_in_again_stays_in_and_a_torn_line_is_no_line(rt: Runtime) -> None:
    async with rt.db.write() as session:
        root = await make.admin(session, rt)
        mal = await make.person(session, rt, "mal")
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="suspended"))
    await append_revocations(rt)
    path = log_path(rt.settings)
    with path.open("a") as file:
        file.write('{"at": "2026')  # killed while writing
    async with rt.db.write() as session:
        await admin.change_person(session, rt, root, mal.id, PersonPatch(status="active"))
    assert await append_revocations(rt) == 1

    assert read_log(path)["person", mal.id].state == "active"
    assert await replay_revocations(rt) == (0, 0, 0)
    assert "mal@" not in path.read_text()
    assert json.loads(path.read_text().splitlines()[0])["subject"] == "person"
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(ReplayListAbsent):
        await replay_revocations(rt, [path.with_name("absent")])
