"""The last discovery documents of identity providers."""

from refract.migrations.steps import UtcDateTime, create_table, drop_table, sa, text_key

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    create_table(
        "issuer_documents",
        sa.Column("issuer", text_key(255), primary_key=True),
        sa.Column("discovery", sa.JSON, nullable=False),
        sa.Column("keys", sa.JSON, nullable=False),
        sa.Column("fetched_at", UtcDateTime, nullable=False),
    )


def downgrade() -> None:
    drop_table("issuer_documents")
