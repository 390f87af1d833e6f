"""Rows are encoded the same way on every database."""

from pathlib import Path

import pytest
from sqlalchemy import BigInteger, Column, MetaData, Table, Text

from refract.core.db.full_text import TextSearchVector
from refract.core.db.session import Database
from refract.core.runtime import Runtime
from refract.transfer.row_format import TableChecksum, TableCodec
from refract.transfer.table_io import compute_checksum, read_lines, write_lines
from tests.conftest import make_settings


def test_a_sum_knows_no_order_and_forgets_nothing() -> None:
    one, other, twice = TableChecksum(), TableChecksum(), TableChecksum()
    for line in (b"a", b"b", b"c"):
        one.add(line)
    for line in (b"c", b"a", b"b"):
        other.add(line)
    for line in (b"a", b"b", b"b"):
        twice.add(line)

    assert one == other
    assert one != twice


async def test_words_under_an_index_are_a_set(rt: Runtime, tmp_path: Path) -> None:
    """What is a set of words on PostgreSQL is text elsewhere."""
    table = Table(
        "words_of_a_test",
        MetaData(),
        Column("id", BigInteger, primary_key=True, autoincrement=False),
        Column("words", Text().with_variant(TextSearchVector(), "postgresql")),
    )
    form, wanted = (
        TableCodec(table),
        [b'[1,"alpha zulu \xc3\xb1and\xc3\xba"]', b"[2,null]", b'[3,""]'],
    )
    small = Database(make_settings(tmp_path / "small"))
    for db in (rt.db, small):
        async with db.engine.begin() as connection:
            await connection.run_sync(table.create)
    try:
        async with rt.db.engine.connect() as there, small.engine.connect() as here:
            await write_lines(
                here, form, [b'[1,"zulu alpha \xc3\xb1and\xc3\xba alpha"]', b"[2,null]", b'[3,""]']
            )
            found = [line async for batch in read_lines(here, form) for line in batch]
            assert found == wanted
            await write_lines(there, form, found)
            assert [line async for batch in read_lines(there, form) for line in batch] == wanted
            assert await compute_checksum(there, form) == await compute_checksum(here, form)
    finally:
        async with rt.db.engine.begin() as connection:
            await connection.run_sync(table.drop)
        await small.close()


@pytest.mark.parametrize("line", [b"[1]", b"{}", b"not json"])
def test_a_line_that_does_not_fit_is_refused(line: bytes) -> None:
    table = Table(
        "t", MetaData(), Column("id", BigInteger, primary_key=True), Column("words", Text)
    )
    with pytest.raises(ValueError, match=r"."):
        TableCodec(table).decode_row(line, "sqlite")
