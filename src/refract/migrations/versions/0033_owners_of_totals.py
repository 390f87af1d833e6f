"""Copies that keep lists of links fast: the primary owner in totals and tags, hosts in searches."""

from refract.migrations.steps import add_column, create_index, drop_column, drop_index, op, sa

revision = "0033"
down_revision = "0032"

INDEXES = {
    "ix_link_totals_owner_clicks": ("link_totals", ["owner_id", "total_clicks", "link_id"]),
    "ix_link_totals_owner_last": ("link_totals", ["owner_id", "last_clicked_at", "link_id"]),
    "ix_link_tags_owner": ("link_tags", ["owner_id", "tag_id", "link_id"]),
}
OWNERS = sa.table("link_owners", sa.column("user_id"), sa.column("primary_link_id"))
LINKS = sa.table("links", sa.column("search_text", sa.Text), sa.column("destination_host", sa.Text))


def upgrade() -> None:
    for table in ("link_totals", "link_tags"):
        add_column(table, sa.Column("owner_id", sa.BigInteger))
        copied, owners = sa.table(table, sa.column("owner_id"), sa.column("link_id")), OWNERS
        primary = sa.select(owners.c.user_id).where(owners.c.primary_link_id == copied.c.link_id)
        owner_id = sa.func.coalesce(primary.scalar_subquery(), 0)
        op.execute(copied.update().values(owner_id=owner_id))
    for name, (table, columns) in INDEXES.items():
        create_index(name, table, columns)
    text, host = LINKS.c.search_text, LINKS.c.destination_host
    op.execute(
        LINKS.update()
        .where(text != "", ~text.contains(host))
        .values(search_text=text + "\n" + host)
    )


def downgrade() -> None:
    for name, (table, _) in INDEXES.items():
        drop_index(name, table)
    for table in ("link_totals", "link_tags"):
        drop_column(table, "owner_id")
