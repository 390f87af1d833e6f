"""Small numbers of items and tags, for linkding's clients."""

from refract.migrations.steps import create_table, drop_table, sa

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    create_table(
        "linkding_numbers",
        sa.Column(
            "user_id",
            sa.BigInteger,
            sa.ForeignKey("users.id", ondelete="CASCADE", name="fk_linkding_numbers_user_id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("item_id", sa.BigInteger, _key("item_id", "items.id")),
        sa.Column("tag_id", sa.BigInteger, _key("tag_id", "tags.id")),
        sa.UniqueConstraint("item_id", name="uq_linkding_numbers_item_id"),
        sa.UniqueConstraint("tag_id", name="uq_linkding_numbers_tag_id"),
    )


def _key(column: str, target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="SET NULL", name=f"fk_linkding_numbers_{column}")


def downgrade() -> None:
    drop_table("linkding_numbers")
