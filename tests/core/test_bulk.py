"""Bulk inserts: the same as single ones, on every database."""

from contextlib import nullcontext
from typing import Any, cast

import pytest
from sqlalchemy import Table, select
from sqlalchemy.exc import DBAPIError, IntegrityError

from refract.core.clock import ManualClock
from refract.core.db.bulk import MIN_ARRAY_ROWS, insert_rows
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.tags.models import Tag

USERS, TAGS = cast("Table", User.__table__), cast("Table", Tag.__table__)
ODD = [
    "",
    "NULL",
    "{a,b}",
    '"quoted"',
    "back\\slash",
    "链接 🔗",
    "line\nbreak",
    "'; DROP TABLE users; --",
]


def people(clock: ManualClock, number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": n + 1,
            "issuer": "https://issuer.example",
            "subject": str(n),
            "email": f"{n}@example.org",
            "email_folded": f"{n}@example.org",
            "display_name": ODD[n % len(ODD)],
            "nickname": "Ada" if n % 2 else None,
            "preferences": {"theme": ODD[n % len(ODD)], "none": None},
            "created_at": clock.now(),
            "last_sync_at": clock.now(),
        }
        for n in range(number)
    ]


@pytest.mark.parametrize("number", [1, MIN_ARRAY_ROWS - 1, MIN_ARRAY_ROWS, 300])
async def test_every_value_arrives_and_what_no_row_names_gets_its_default(
    rt: Runtime, clock: ManualClock, number: int
) -> None:
    rows = people(clock, number)
    async with rt.db.write() as session:
        await insert_rows(session, USERS, rows)
    async with rt.db.read() as reading:
        found = list(await reading.scalars(select(User).order_by(User.id)))
    assert [{name: getattr(one, name) for name in rows[0]} for one in found] == rows
    assert {(one.email_verified, one.plan, one.role, one.status) for one in found} == {
        (False, "free", "user", "active")
    }


@pytest.mark.parametrize("number", [3, MIN_ARRAY_ROWS + 4])
async def test_without_leave_to_skip_a_taken_key_fails_and_nothing_comes(
    rt: Runtime, clock: ManualClock, number: int
) -> None:
    rows = people(clock, number)
    with pytest.raises(IntegrityError):
        async with rt.db.write() as session:
            await insert_rows(session, USERS, [*rows, rows[0] | {"id": 999}])
    async with rt.db.read() as session:
        assert list(await session.scalars(select(User.id))) == []


@pytest.mark.parametrize("number", [3, MIN_ARRAY_ROWS + 4])
async def test_a_value_that_is_too_long_is_never_cut_off(
    rt: Runtime, clock: ManualClock, number: int
) -> None:
    rows = people(clock, number)
    rows[1]["display_name"] = "x" * 101
    knows_lengths = rt.db.dialect != "sqlite"
    with pytest.raises(DBAPIError, match="too long") if knows_lengths else nullcontext():
        async with rt.db.write() as session:
            await insert_rows(session, USERS, rows)
    async with rt.db.read() as reading:
        found = list(await reading.scalars(select(User.display_name).where(User.id == 2)))
    assert found == ([] if knows_lengths else ["x" * 101])
