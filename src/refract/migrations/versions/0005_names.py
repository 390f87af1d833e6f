"""The common namespace of links and lists."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    create_table(
        "names",
        sa.Column("key", text_key(64), primary_key=True),
        sa.Column("name", text_key(64), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("target_id", sa.BigInteger, nullable=False),
        sa.Column("head", text_key(24), nullable=False),
        sa.Column("middle", text_key(24), nullable=False),
        sa.Column("tail", text_key(24), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.CheckConstraint("kind IN ('link', 'list')", name="ck_names_kind"),
    )
    create_index("ix_names_target", "names", ["kind", "target_id"])
    for part in ("head", "middle", "tail"):
        create_index(f"ix_names_{part}", "names", [part])


def downgrade() -> None:
    drop_table("names")
