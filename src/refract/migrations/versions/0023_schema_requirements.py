"""Revisions that older code cannot run on, so that it can tell."""

from refract.migrations.steps import create_table, drop_table, sa, text_key

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    create_table(
        "schema_requirements",
        sa.Column("revision", text_key(16), primary_key=True),
        sa.Column("version", sa.String(32), nullable=False),
    )


def downgrade() -> None:
    drop_table("schema_requirements")
