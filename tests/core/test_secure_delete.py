"""Deleted data is gone from the files of SQLite, including the log.

Security findings, "Low": 121 strings were left in the WAL.
"""

from pathlib import Path

import pytest
from sqlalchemy import delete, text

from refract.admin import jobs, service
from refract.admin.schemas import LinkDisposition
from refract.core.runtime import Runtime
from refract.identity.payloads import FinishAccountDeletion
from refract.links.models import LinkChange
from refract.registry import list_personal_data_hooks
from tests import make

CANARY = "canary-of-somebody-who-left"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_nothing_of_a_deleted_account_is_left_in_the_files(
    rt: Runtime, tmp_path: Path
) -> None:
    async with rt.db.engine.connect() as connection:
        assert (await connection.execute(text("PRAGMA secure_delete"))).scalar_one() == 1
    async with rt.db.write() as session:
        root, eve = await make.admin(session, rt), await make.person(session, rt, "eve")
        for number in range(20):
            await make.link(
                session,
                rt,
                eve,
                f"https://example.com/{CANARY}/{number}",
                notes=f"{CANARY} {number}",
                title=CANARY,
            )
    async with rt.db.write() as session:
        await service.delete_person(
            session,
            rt,
            root,
            eve.id,
            list_personal_data_hooks(),
            links=LinkDisposition.DELETE,
            heir=None,
        )
        await session.execute(delete(LinkChange))
    (finish_account_deletion,) = jobs.make_handlers(list_personal_data_hooks())
    await finish_account_deletion(rt, FinishAccountDeletion(user_id=eve.id))

    found = {path.name: path.read_bytes().count(CANARY.encode()) for path in _files(tmp_path)}
    assert sum(found.values()) == 0, found


def _files(home: Path) -> list[Path]:
    return sorted(home.glob("refract.db*"))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_reader_does_not_stop_a_checkpoint_from_ending(rt: Runtime) -> None:
    async with rt.db.read() as session:
        await session.execute(text("SELECT count(*) FROM users"))
        await rt.db.checkpoint()
