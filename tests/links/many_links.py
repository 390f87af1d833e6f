"""Many links, inserted by the database itself within seconds."""

import random
from typing import Any

from sqlalchemy import text

from refract.core.db.bulk import insert_rows
from refract.core.db.session import WriteSession
from refract.core.ids import get_min_id
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.names import similarity
from refract.names.models import Name
from refract.tags.models import Tag
from tests import make

COUNTS = {"sqlite": 5_000, "postgresql": 30_000, "mysql": 30_000}
"""How many. SQLite plans without statistics: the number does not matter there."""
PEOPLE = 600
STEP = 1 << 22
"""One link per millisecond."""

_DIGITS = "(" + " UNION ALL ".join(f"SELECT {digit} AS d" for digit in range(10)) + ")"
_JOINED = " CROSS JOIN ".join(f"{_DIGITS} {place}" for place in "abcef")
_DIGITS = "a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d"
_ALL_NUMBERS = f"(SELECT {_DIGITS} AS i FROM {_JOINED}) d"  # noqa: S608
_NUMBERS = f"(SELECT * FROM {_ALL_NUMBERS} WHERE i < :count) n"  # noqa: S608
_SECOND = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f000', julianday(:now) + i / 86400.0)",
    "postgresql": "CAST(:now AS timestamptz) + i * interval '1 second'",
    "mysql": "DATE_ADD(:now, INTERVAL i SECOND)",
}
_TEXT = {"sqlite": "'{0}' || i", "postgresql": "'{0}' || i", "mysql": "CONCAT('{0}', i)"}


async def insert_many_links(rt: Runtime) -> tuple[User, int]:
    """Insert 600 users and their links; return one of the users and the first link's id.

    Some links are public, disabled, expired, deleted, tagged, shared or clicked.
    """
    first, now = get_min_id(rt.clock.now()), rt.clock.now()
    async with rt.db.write() as session:
        people = [make.somebody(rt, f"person-{number}") for number in range(PEOPLE)]
        session.add_all(people)
        tags = [
            Tag(
                id=rt.ids.next_id(),
                scope="shared",
                space=0,
                key=f"t{number}",
                name=f"T{number}",
                name_key=f"t{number}",
                created_at=now,
            )
            for number in range(50)
        ]
        session.add_all(tags)
        await session.flush()
        for table, columns in _rows(rt.db.dialect, first, people[0].id, tags[0].id).items():
            chosen = columns.pop("where", "1 = 1")
            names, expressions = ", ".join(columns), ", ".join(columns.values())
            source = f"SELECT {expressions} FROM {_NUMBERS} WHERE {chosen}"  # noqa: S608
            statement = f"INSERT INTO {table} ({names}) {source}"
            plain = now if rt.db.dialect == "postgresql" else now.replace(tzinfo=None)
            shown = plain.isoformat(" ") if rt.db.dialect == "sqlite" else plain
            values = {"count": COUNTS[rt.db.dialect]}
            await session.execute(
                text(statement), values | ({"now": shown} if ":now" in statement else {})
            )
        await _names(session, rt, first)
    await gather_statistics(
        rt,
        "links, names, link_owners, link_shares, link_tags, link_totals, link_history, tags, users",
    )
    return people[0], first


def _rows(dialect: str, first: int, user: int, tag: int) -> dict[str, dict[str, str]]:
    """Return the columns of each table as expressions over the number `i`."""
    number = f"{first} + CAST(i AS {'SIGNED' if dialect == 'mysql' else 'BIGINT'}) * {STEP}"
    second, words = _SECOND[dialect], _TEXT[dialect]
    now = "CAST(:now AS timestamptz)" if dialect == "postgresql" else ":now"
    state = (
        "CASE i % 30 WHEN 1 THEN 'disabled' WHEN 2 THEN 'expired' WHEN 3 THEN 'deleted' ELSE"
        " 'active' END"
    )
    owner = f"{user} + i % {PEOPLE}"
    copied = {
        "status": state,
        "visibility": "CASE WHEN i % 20 = 7 THEN 'public' ELSE 'unlisted' END",
        "updated_at": second,
    }
    return {
        "links": {
            "id": number,
            "destination": "'https://example.com/'",
            "href": "'https://example.com/'",
            "href_digest": words.format("digest-"),
            "destination_host": words.format("host-"),
            "has_placeholders": "FALSE",
            "redirect_status": "302",
            "forward_query": "FALSE",
            "disabled_by_admin": "FALSE",
            "flagged": "FALSE",
            "expires_at": f"CASE WHEN i % 10 = 2 THEN {second} END",
            "created_at": second,
            "deleted_at": f"CASE WHEN i % 30 = 3 THEN {second} END",
            "version": "1",
            "search_text": words.format("words "),
            **copied,
        },
        "link_owners": {
            "link_id": number,
            "user_id": owner,
            "primary_link_id": number,
            "created_at": now,
            **copied,
        },
        "link_shares": {
            "link_id": number,
            "user_id": f"{user} + i % 7",
            "created_at": now,
            "where": "i % 200 = 5",
        },
        "link_tags": {
            "link_id": number,
            "owner_id": owner,
            "tag_id": f"{tag} + i % 50",
            "where": "i % 3 = 0",
        },
        "link_totals": {
            "link_id": number,
            "owner_id": owner,
            "total_clicks": "i % 977",
            "bot_clicks": "0",
            "last_clicked_at": second,
            "where": "i % 2 = 0",
        },
        "link_history": {
            "link_id": number,
            "version": "1",
            "at": now,
            "actor_id": f"{user}",
            "as_admin": "FALSE",
            "action": "'created'",
            "changes": "'{}'",
            "snapshot": "'{}'",
        },
    }


async def _names(session: WriteSession, rt: Runtime, first: int) -> None:
    chance = random.Random(7)
    rows: list[dict[str, Any]] = []
    for number in range(COUNTS[rt.db.dialect]):
        key = (
            f"{''.join(chance.choices('abcdefghijklmnoprstuvwy', k=chance.randint(2, 9)))}-{number}"
        )
        head, middle, tail = similarity.split_key(key)
        parts = {"head": head, "middle": middle, "tail": tail}
        rows.append(
            {
                "key": key,
                "name": key,
                "kind": "link",
                "target_id": first + number * STEP,
                "created_at": rt.clock.now(),
                **parts,
            }
        )
    await insert_rows(session, Name, rows)


async def gather_statistics(rt: Runtime, tables: str) -> None:
    """Update the planner's statistics, as servers do after a while. SQLite goes without."""
    if rt.db.dialect == "sqlite":
        return
    async with rt.db.engine.connect() as connection:
        await connection.execute(
            text(f"ANALYZE {'TABLE ' if rt.db.dialect == 'mysql' else ''}{tables}")
        )
        await connection.commit()
