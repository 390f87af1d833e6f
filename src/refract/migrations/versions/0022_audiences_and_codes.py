"""Links for everyone signed in, and random codes.

`audience` refines the visibility `secure`: code that does not know it goes on treating such a link
as secure.
"""

from refract.migrations.steps import add_column, drop_column, sa, text_key

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    add_column("links", sa.Column("audience", sa.String(10)))
    add_column("links", sa.Column("random_code", text_key(16)))
    add_column(
        "names", sa.Column("generated", sa.Boolean, nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    drop_column("names", "generated")
    drop_column("links", "random_code")
    drop_column("links", "audience")
