"""Imports into the library, and their rows."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    long_text,
    sa,
)

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    create_table(
        "imports",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column(
            "user_id",
            sa.BigInteger,
            sa.ForeignKey("users.id", ondelete="CASCADE", name="fk_imports_user_id"),
            nullable=False,
        ),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("existing", sa.BigInteger, nullable=False),
        sa.Column("refused", sa.BigInteger, nullable=False),
        sa.Column("made_tags", sa.JSON, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("finished_at", UtcDateTime),
        sa.CheckConstraint(
            "status IN ('RUNNING', 'DONE', 'STOPPED', 'ROLLING_BACK', 'ROLLED_BACK')",
            name="ck_imports_status",
        ),
    )
    create_index("ix_imports_user", "imports", ["user_id", "id"])
    create_table(
        "import_rows",
        sa.Column(
            "import_id",
            sa.BigInteger,
            sa.ForeignKey("imports.id", ondelete="CASCADE", name="fk_import_rows_import_id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("place", sa.String(40), nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        sa.Column("outcome", sa.String(10), nullable=False),
        sa.Column("why", sa.Text),
        sa.Column("item_id", sa.BigInteger),
        sa.Column("content", long_text()),
    )
    create_index("ix_import_rows_outcome", "import_rows", ["import_id", "outcome", "number"])


def downgrade() -> None:
    drop_table("import_rows")
    drop_table("imports")
