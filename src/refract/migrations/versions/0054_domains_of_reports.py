"""The domains of reported names."""

from refract.migrations.steps import add_column, drop_column, sa, text_key

revision = "0054"
down_revision = "0052"


def upgrade() -> None:
    """Add the column. Reports that are stored already keep bare names."""
    add_column("reports", sa.Column("domain", text_key(253)))


def downgrade() -> None:
    drop_column("reports", "domain")
