"""Prepared selects give the same rows on the event loop as SQLAlchemy does."""

from typing import Any

import pytest
from sqlalchemy import bindparam, inspect, select
from sqlalchemy.orm.attributes import instance_state

from refract.core.db.prepared import IN_LIST_SIZES, PreparedSelect
from refract.core.db.session import count_statements
from refract.core.runtime import Runtime
from refract.identity.models import ApiKey, User, UserStatus
from refract.links.models import Link
from tests import make
from tests.client import on_sqlite

KEYS = PreparedSelect(
    lambda: (
        select(ApiKey, User, User.email)
        .join(User, User.id == ApiKey.user_id)
        .where(User.status == UserStatus.ACTIVE, User.id.in_(bindparam("ids", expanding=True)))
        .order_by(ApiKey.id)
    )
)
NEWER = PreparedSelect(
    lambda: select(Link).where(Link.created_at >= bindparam("since")).order_by(Link.id)
)


def _get_columns(instance: Any) -> dict[str, Any]:
    attributes = inspect(type(instance)).column_attrs
    return {attribute.key: getattr(instance, attribute.key) for attribute in attributes}


async def _fetch_both(rt: Runtime, prepared: PreparedSelect, **values: Any) -> list[Any]:
    """Return the rows, after checking that the ones of SQLAlchemy are equal."""
    async with rt.db.read() as session:
        rows = [list(row) for row in await session.fetch(prepared, **values)]
    async with rt.db.read() as session:
        expected = (await session.execute(prepared.statement, values)).all()
        assert len(rows) == len(expected)
        for row, known in zip(rows, expected, strict=True):
            for cell, same in zip(row, known, strict=True):
                if isinstance(same, ApiKey | User | Link):
                    assert type(cell) is type(same)
                    assert _get_columns(cell) == _get_columns(same)
                    assert instance_state(cell).key == instance_state(same).key
                else:
                    assert cell == same
                    assert type(cell) is type(same)
    return rows


async def test_rows_are_those_of_sqlalchemy(rt: Runtime) -> None:
    async with rt.db.write() as session:
        people = [await make.person(session, rt, f"p{number}") for number in range(12)]
        people.append(await make.suspended(session, rt))
        for person in people:
            await make.key(session, rt, person)
        link = await make.link(session, rt, people[0], title="Ä")
    ids = [person.id for person in people]

    assert len(await _fetch_both(rt, KEYS, ids=ids)) == 12
    assert len(await _fetch_both(rt, KEYS, ids=ids[:1])) == 1
    assert await _fetch_both(rt, KEYS, ids=[]) == []
    ((found,),) = await _fetch_both(rt, NEWER, since=link.created_at)
    assert found.on_hold is False
    assert found.created_at.tzinfo is not None


async def test_a_detached_instance_can_be_attached_and_changed(rt: Runtime) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, await make.person(session, rt))
    async with rt.db.read() as session:
        ((found,),) = await session.fetch(NEWER, since=link.created_at)
    async with rt.db.write() as session:
        session.add(found)
        found.title = "Changed"
    async with rt.db.read() as session:
        assert (await session.get_one(Link, link.id)).title == "Changed"


async def test_a_write_session_sees_its_own_changes(rt: Runtime) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        await make.key(session, rt, ada)
        ada.display_name = "Grace"
        ((_, user, _),) = await session.fetch(KEYS, ids=[ada.id])
        assert user is ada
        assert user.display_name == "Grace"


@on_sqlite
async def test_rows_read_in_the_thread_belong_to_the_snapshot(rt: Runtime) -> None:
    in_thread = PreparedSelect(lambda: KEYS.statement, in_thread=True)
    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        await make.key(session, rt, ada)
    assert await _fetch_both(rt, in_thread, ids=[ada.id])

    async with rt.db.read() as reader:
        before = await reader.fetch(in_thread, ids=[ada.id])
        async with rt.db.write() as session:
            await make.key(session, rt, ada)
        after = await reader.fetch(in_thread, ids=[ada.id])
        newest = await reader.fetch(KEYS, ids=[ada.id])
    assert [len(before), len(after), len(newest)] == [1, 1, 2]


async def test_statements_that_are_observed_are_those_of_an_engine(rt: Runtime) -> None:
    seen: list[str] = []
    stop = count_statements(rt.db.read_engine, seen.append)
    async with rt.db.read() as session:
        await session.fetch(KEYS, ids=[1, 2, 3])
    stop()
    assert len([statement for statement in seen if statement.startswith("SELECT")]) == 1


@pytest.mark.parametrize("count", [*IN_LIST_SIZES, 3, 77])
async def test_lists_of_any_size_find_each_row_once(rt: Runtime, count: int) -> None:
    async with rt.db.write() as session:
        ada = await make.person(session, rt)
        await make.key(session, rt, ada)
    assert len(await _fetch_both(rt, KEYS, ids=[*range(1, count), ada.id])) == 1
