"""Alembic's entry point: the connection comes from `refract.migrations`, never from a file."""

from typing import Any

from alembic import context

config = context.config


def note(ctx: Any, step: Any, heads: Any, run_args: Any, **_: Any) -> None:  # noqa: ARG001 - Alembic
    config.attributes["ran"].append(str(step.up_revision_id))


context.configure(
    connection=config.attributes["connection"],
    transaction_per_migration=True,
    transactional_ddl=config.attributes["connection"].dialect.name in ("postgresql", "sqlite"),
    on_version_apply=note,
)
with context.begin_transaction():
    context.run_migrations()
