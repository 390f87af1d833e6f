"""Parts of words in the search index: a job indexes all items again."""

from datetime import UTC, datetime

from refract.core.ids import get_min_id
from refract.migrations.steps import UtcDateTime, op, sa

revision = "0036"
down_revision = "0035"

KIND = "library.reindex_items"
JOBS = sa.table(
    "jobs",
    sa.column("id", sa.BigInteger),
    sa.column("kind", sa.String),
    sa.column("payload", sa.JSON),
    sa.column("status", sa.String),
    sa.column("attempt_count", sa.SmallInteger),
    sa.column("max_tries", sa.SmallInteger),
    sa.column("run_at", UtcDateTime),
    sa.column("created_at", UtcDateTime),
    sa.column("share", sa.BigInteger),
    sa.column("dedup", sa.String),
)


INDEXED = sa.table("item_search", sa.column("item_id"))


def upgrade() -> None:
    bind, now = op.get_bind(), datetime.now(UTC)
    downgrade()
    if bind.scalar(sa.select(INDEXED.c.item_id).limit(1)) is None:
        return
    bind.execute(
        sa.insert(JOBS).values(
            id=get_min_id(now),
            kind=KIND,
            payload={},
            status="PENDING",
            attempt_count=0,
            max_tries=3,
            run_at=now,
            created_at=now,
            share=0,
            dedup=KIND,
        )
    )


def downgrade() -> None:
    op.get_bind().execute(sa.delete(JOBS).where(JOBS.c.kind == KIND))
