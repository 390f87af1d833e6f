"""Click limits of links, and where they lead once the limit is reached."""

from refract.migrations.steps import add_column, create_table, drop_column, drop_table, sa

revision = "0086"
down_revision = "0085"


def upgrade() -> None:
    add_column("links", sa.Column("click_limit", sa.Integer))
    add_column("links", sa.Column("limit_destination", sa.Text))
    create_table(
        "link_limits",
        sa.Column("link_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("taken", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    drop_table("link_limits")
    drop_column("links", "limit_destination")
    drop_column("links", "click_limit")
