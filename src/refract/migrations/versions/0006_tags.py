"""Tags, shared and personal."""

from refract.migrations.steps import (
    UtcDateTime,
    create_index,
    create_table,
    drop_table,
    sa,
    text_key,
)

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    create_table(
        "tags",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("scope", sa.String(10), nullable=False),
        sa.Column(
            "owner_id",
            sa.BigInteger,
            sa.ForeignKey("users.id", ondelete="CASCADE", name="fk_tags_owner_id"),
        ),
        sa.Column("space", sa.BigInteger, nullable=False),
        sa.Column("key", text_key(200), nullable=False),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("name_key", text_key(200), nullable=False),
        sa.Column("color", sa.String(7), nullable=False),
        sa.Column("usage_count", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("deleted_at", UtcDateTime),
        sa.UniqueConstraint("space", "key", name="uq_tags_space_key"),
        sa.CheckConstraint("scope IN ('shared', 'personal')", name="ck_tags_scope"),
    )
    create_index("ix_tags_name_key", "tags", ["space", "name_key"])
    create_index("ix_tags_usage", "tags", ["space", "usage_count", "id"])
    create_index("ix_tags_last_used", "tags", ["space", "last_used_at", "id"])


def downgrade() -> None:
    drop_table("tags")
