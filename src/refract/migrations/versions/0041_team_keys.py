"""API keys of teams: the key that an audit entry names, and lineage across accounts."""

from refract.migrations.steps import (
    add_column,
    create_index,
    drop_column,
    drop_index,
    sa,
)

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    add_column("audit_log", sa.Column("key_prefix", sa.String(16)))
    create_index("ix_api_keys_parent", "api_keys", ["parent_id"])


def downgrade() -> None:
    drop_index("ix_api_keys_parent", "api_keys")
    drop_column("audit_log", "key_prefix")
