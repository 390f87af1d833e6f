"""Facts that many click events share, in tables of their own.

Events that are there keep their facts in their own columns, until they are archived. Older code
would not find the facts of new events.
"""

from typing import Any

from refract.migrations.steps import (
    accept_older_code,
    add_column,
    create_index,
    create_table,
    drop_column,
    drop_table,
    op,
    refuse_older_code,
    sa,
    text_key,
)

revision = "0027"
down_revision = "0026"

_TABLES: dict[str, tuple[str, dict[str, Any]]] = {
    "click_agents": (
        "agent_id",
        {
            "user_agent": sa.String(512),
            "browser": sa.String(100),
            "browser_version": sa.String(30),
            "system": sa.String(100),
            "system_version": sa.String(30),
        },
    ),
    "click_places": (
        "geo_id",
        {
            "country_code": text_key(2),
            "country": sa.String(100),
            "city": sa.String(100),
            "latitude": sa.Double,
            "longitude": sa.Double,
        },
    ),
    "click_referrers": (
        "referrer_id",
        {"referrer": sa.String(2048), "referrer_host": text_key(255)},
    ),
    "click_campaigns": (
        "campaign_id",
        {
            "utm_source": sa.String(255),
            "utm_medium": sa.String(255),
            "utm_campaign": sa.String(255),
            "utm_term": sa.String(255),
            "utm_content": sa.String(255),
        },
    ),
}


def upgrade() -> None:
    for table, (reference, columns) in _TABLES.items():
        create_table(
            table,
            sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("seen_on", sa.Date, nullable=False),
            *(sa.Column(name, kind) for name, kind in columns.items()),
        )
        create_index(f"ix_{table}_seen_on", table, ["seen_on"])
        add_column("click_events", sa.Column(reference, sa.BigInteger))
    refuse_older_code(revision, "0.2.0")


def downgrade() -> None:
    for table, (reference, columns) in _TABLES.items():
        _copy_facts(table, reference, list(columns))
        drop_column("click_events", reference)
        drop_table(table)
    accept_older_code(revision)


def _copy_facts(table: str, reference: str, names: list[str]) -> None:
    """Copy shared facts back into the events that refer to them."""
    events = sa.table("click_events", sa.column(reference), *(sa.column(name) for name in names))
    shared = sa.table(table, sa.column("id"), *(sa.column(name) for name in names))
    same = shared.c.id == events.c[reference]

    def choose(name: str) -> sa.ColumnElement[object]:
        fact = sa.select(shared.c[name]).where(same).scalar_subquery()
        return sa.func.coalesce(events.c[name], fact)

    op.execute(
        sa.update(events)
        .where(events.c[reference].in_(sa.select(shared.c.id)))
        .values({name: choose(name) for name in names})
    )
