"""Inserts that meet existing rows: taken keys are skipped or overwritten, other errors raise."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, IntegrityError

from refract.core.clock import ManualClock
from refract.core.db.bulk import MIN_ARRAY_ROWS
from refract.core.db.session import WriteSession
from refract.core.db.upsert import insert_if_absent, try_insert, upsert
from refract.core.runtime import Runtime
from refract.tags.models import DEFAULT_COLOR, Tag

Row = dict[str, Any]
Insert = Callable[[WriteSession, list[Row]], Awaitable[object]]
SIZES = pytest.mark.parametrize("number", [1, 3, MIN_ARRAY_ROWS + 4])
WAYS: dict[str, Insert] = {
    "insert_if_absent": lambda session, rows: insert_if_absent(session, Tag, rows),
    "try_insert": lambda session, rows: try_insert(session, Tag, rows[-1]),
    "upsert": lambda session, rows: upsert(session, Tag, rows, ["name"]),
}


@pytest.fixture
def tag(clock: ManualClock) -> Callable[..., Row]:
    def make(number: int, key: str, name: str = "") -> Row:
        return {
            "id": number,
            "scope": "shared",
            "space": 0,
            "key": key,
            "name": name or key,
            "name_key": key,
            "created_at": clock.now(),
        }

    return make


async def _tags(rt: Runtime) -> dict[int, tuple[str, str]]:
    async with rt.db.read() as session:
        return {tag.id: (tag.key, tag.name) for tag in await session.scalars(select(Tag))}


@SIZES
async def test_a_row_whose_key_is_taken_is_left_out_and_the_others_come(
    rt: Runtime, tag: Callable[..., Row], number: int
) -> None:
    async with rt.db.write() as session:
        await insert_if_absent(session, Tag, [tag(1, "first")])
        await insert_if_absent(
            session, Tag, [tag(100 + n, "first" if n == 0 else f"tag-{n}") for n in range(number)]
        )
    assert await _tags(rt) == {1: ("first", "first")} | {
        100 + n: (f"tag-{n}", f"tag-{n}") for n in range(1, number)
    }
    async with rt.db.read() as session:
        assert set(await session.scalars(select(Tag.color))) == {DEFAULT_COLOR}, (
            "what no row names gets its default"
        )


@pytest.mark.parametrize(
    "taken", [{"id": 1, "key": "other"}, {"id": 2, "key": "first"}, {"id": 1, "key": "first"}]
)
async def test_whether_a_row_was_inserted_is_known(
    rt: Runtime, tag: Callable[..., Row], taken: Row
) -> None:
    async with rt.db.write() as session:
        assert await try_insert(session, Tag, tag(1, "first"))
        assert not await try_insert(session, Tag, tag(taken["id"], taken["key"]))
        assert await try_insert(session, Tag, tag(3, "third"))
    assert await _tags(rt) == {1: ("first", "first"), 3: ("third", "third")}


@SIZES
async def test_a_row_that_is_there_gets_the_new_values_of_the_named_columns(
    rt: Runtime, tag: Callable[..., Row], number: int
) -> None:
    async with rt.db.write() as session:
        await upsert(session, Tag, [tag(100, "tag-0", "before")], ["name"])
        await upsert(
            session,
            Tag,
            [tag(100 + n, f"tag-{n}", "after") | {"color": "#123456"} for n in range(number)],
            ["name"],
        )
    assert await _tags(rt) == {100 + n: (f"tag-{n}", "after") for n in range(number)}
    async with rt.db.read() as session:
        assert await session.scalar(select(Tag.color).where(Tag.id == 100)) == DEFAULT_COLOR, (
            "no other column is touched"
        )


@SIZES
@pytest.mark.parametrize("way", WAYS)
async def test_a_value_that_does_not_fit_is_an_error(
    rt: Runtime, tag: Callable[..., Row], way: str, number: int
) -> None:
    rows = [tag(100 + n, f"tag-{n}") for n in range(number)]
    rows[-1]["name"] = "x" * 1000
    knows_lengths = rt.db.dialect != "sqlite"
    expected: AbstractContextManager[object] = (
        pytest.raises(DBAPIError, match="too long") if knows_lengths else nullcontext()
    )
    with expected:
        async with rt.db.write() as session:
            await WAYS[way](session, rows)
    assert [name for _, name in (await _tags(rt)).values() if name.startswith("x")] == (
        [] if knows_lengths else ["x" * 1000]
    )


@SIZES
@pytest.mark.parametrize("way", WAYS)
async def test_a_value_that_is_absent_is_an_error(
    rt: Runtime, tag: Callable[..., Row], way: str, number: int
) -> None:
    rows = [tag(100 + n, f"tag-{n}") for n in range(number)]
    rows[-1]["name"] = None
    with pytest.raises(IntegrityError):
        async with rt.db.write() as session:
            await WAYS[way](session, rows)
    assert await _tags(rt) == {}
