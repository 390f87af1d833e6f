"""Worker ids: which process may issue Snowflakes under which number."""

from refract.migrations.steps import create_table, drop_table, sa

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_table(
        "worker_ids",
        sa.Column("worker", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.String(32), nullable=False),
        sa.Column("reserved_until_ms", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    drop_table("worker_ids")
