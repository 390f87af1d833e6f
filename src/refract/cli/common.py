"""Helpers for commands: validated options, settings, and a runtime on the installation's data."""

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TypeVar

import structlog
from pydantic import BaseModel, SecretStr, ValidationError

from refract import migrations
from refract.core.db.session import Database
from refract.core.errors import Invalid
from refract.core.ids import NoIds
from refract.core.log import configure_logging
from refract.core.runtime import Runtime, open_runtime
from refract.core.settings.loader import load_settings, prepare_data_dir
from refract.core.settings.model import Settings
from refract.identity import audit
from refract.identity.models import User
from refract.identity.users import ensure_owner, find_owner, get_user_by_email
from refract.server.installation import read_address, require_installation, require_schema

CommandResultT = TypeVar("CommandResultT")
BodyT = TypeVar("BodyT", bound=BaseModel)
_OPTION_NAMES = {
    "names": "name",
    "tags": "tag",
    "new_tags": "tag",
    "redirect_status": "status",
    "default_redirect_status": "default-status",
    "expires_at": "expires",
    "scopes": "scope",
    "preview_card.title": "card-title",
    "preview_card.description": "card-description",
    "preview_card.image_url": "card-image",
}
"""API fields whose options have another name."""


class InvalidValue(Invalid):
    """{problem}"""


class InvalidOption(Invalid):
    """--{name} is invalid: {why}"""


def validate_options(model: type[BodyT], **given: object) -> BodyT:
    """Return the options as an API body; raise `InvalidOption` for the first invalid one."""
    try:
        return model(**given)
    except ValidationError as exc:
        first = exc.errors()[0]
        why = first["msg"].removeprefix("Value error, ").rstrip(".")
        field, part = str(first["loc"][0]), ".".join(map(str, first["loc"]))
        raise InvalidOption(
            name=(_OPTION_NAMES.get(part) or _OPTION_NAMES.get(field, field)).replace("_", "-"),
            why=f"{why}.",
        ) from exc


def read_secret(given: str) -> str:
    """Return the first line of `@FILE`, the value of the variable `env:NAME`, or the text itself.

    Arguments are visible to every user of the machine; files and variables are not.
    """
    if given.startswith("env:"):
        if not (value := os.environ.get(given[4:], "")):
            raise InvalidValue(problem=f"The variable {given[4:]} is not set.")
        return value
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text().splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError) as exc:
        raise InvalidValue(problem=f"Can't read {given[1:]}, or it is empty.") from exc


def load_command_settings(data_dir: Path | None, *, creates: bool = False) -> Settings:
    """Return the settings of a command other than `serve`, which logs warnings and errors only.

    Raise if there is no installation, unless the command `creates` one. Without a configured
    base URL, use the one of the server that was started last.
    """
    settings = load_settings(data_dir=data_dir)
    if creates or settings.data_dir.exists():
        prepare_data_dir(settings.data_dir)
    if not creates:
        require_installation(settings)
    configure_logging(settings.model_copy(update={"log_level": "warning"}))
    served = read_address(settings) if settings.base_url is None else None
    return settings if served is None else settings.model_copy(update={"base_url": served.url})


def run_on_data(
    settings: Settings,
    work: Callable[[Runtime], Awaitable[CommandResultT]],
    *,
    makes_ids: bool = True,
) -> CommandResultT:
    """Run `work` on this installation's data, beside a running server or without one.

    Nothing is migrated. A command that makes no ids claims no worker id, and so writes nothing.
    """

    async def run(db: Database) -> CommandResultT:
        structlog.contextvars.bind_contextvars(**{audit.ENTRY_POINT_KEY: "command line"})
        state = await migrations.check_schema(db)
        require_schema(settings, state.revision)
        if state.problem is not None:
            raise state.problem
        kept = _add_temporary_secret(settings)
        async with open_runtime(kept, db=db, makes_ids=makes_ids) as rt:
            return await work(rt)

    return run_on_database(settings, run)


def run_on_database(
    settings: Settings, work: Callable[[Database], Awaitable[CommandResultT]]
) -> CommandResultT:
    """Run `work` on the database without checking its schema."""

    async def run() -> CommandResultT:
        db = Database(settings)
        try:
            return await work(db)
        finally:
            await db.close()

    return asyncio.run(run())


def _add_temporary_secret(settings: Settings) -> Settings:
    """Return settings with a secret for this run if there is no data directory to keep one in.

    A command on a database server must not create a data directory.
    """
    if settings.data_dir.exists() or settings.secret_key is not None:
        return settings
    return settings.model_copy(update={"secret_key": SecretStr(secrets.token_urlsafe(48))})


async def get_acting_user(rt: Runtime, email: str | None) -> User:
    """Return the user that a command acts as: by email, or the owner, created if there is none."""
    async with rt.db.read() as session:
        found = await (get_user_by_email(session, email) if email else find_owner(session))
    if found is not None:
        return found
    if not isinstance(rt.ids, NoIds):
        return await _create_owner(rt)
    from refract.core.worker_ids import lease_ids  # noqa: PLC0415 - not for commands that only read

    async with lease_ids(rt.db, rt.clock) as rt.ids:
        return await _create_owner(rt)


async def _create_owner(rt: Runtime) -> User:
    async with rt.db.write() as session:
        return (await ensure_owner(session, rt))[0]


_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def parse_start(text: str, now: datetime) -> datetime:
    """Parse `30d` (from now), a date (its beginning) or a time. The default time zone is UTC."""
    return parse_time(text, now, time_of_date=time.min)


def parse_time(text: str, now: datetime, *, time_of_date: time = time(23, 59, 59)) -> datetime:
    """Parse `30d` (from now), a date (until its end) or a time. The default time zone is UTC."""
    count, unit = text[:-1], text[-1:]
    try:
        if count.isascii() and count.isdigit() and unit in _UNITS:
            return now + int(count) * _UNITS[unit]
        read = datetime.fromisoformat(text)
        if len(text) == len("2026-12-31"):
            return datetime.combine(read, time_of_date, UTC)
        return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as exc:
        raise InvalidValue(
            problem=f'"{text}" is not a time: write 30d, 2026-12-31 or 2026-12-31T18:00:00Z.'
        ) from exc
