"""Alembic's entry point: the connection comes from `refract.migrations`, never from a file."""

from typing import Any

from alembic import context

config = context.config


def record_step(
    ctx: Any,  # noqa: ARG001 - Alembic
    step: Any,
    heads: Any,  # noqa: ARG001 - Alembic
    run_args: Any,  # noqa: ARG001 - Alembic
    **_: Any,
) -> None:
    config.attributes["ran"].append(str(step.up_revision_id))


context.configure(
    connection=config.attributes["connection"],
    transaction_per_migration=True,
    transactional_ddl=config.attributes["connection"].dialect.name in ("postgresql", "sqlite"),
    on_version_apply=record_step,
)
with context.begin_transaction():
    context.run_migrations()
