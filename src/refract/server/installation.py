"""The installation that a command works on: whether it exists, and its server's address."""

import json
import os
import secrets
from pathlib import Path
from typing import NamedTuple

import structlog
from sqlalchemy import make_url

from refract.core.errors import ConfigurationError
from refract.core.settings.model import Settings

_ADDRESS_FILE = "served.json"
LOCATION_HINT = (
    "Name the data directory with --data-dir or REFRACT_DATA_DIR, or the service's environment with"
    " refract --env-file FILE"
)


class ServedAddress(NamedTuple):
    """The address of the last server on this data directory."""

    url: str
    signin_links: bool


def find_missing_installation(settings: Settings) -> ConfigurationError | None:
    """Return the error for a missing SQLite file, or None. Opening the file would create it."""
    file = Path(make_url(settings.effective_database_url).database or "").absolute()
    if settings.dialect != "sqlite" or file.is_file():
        return None
    return ConfigurationError(
        problem=(
            f"There's no installation in the data directory {settings.data_dir.absolute()}: there's"
            f" no database {file}."
        ),
        remedy=f"{LOCATION_HINT}. refract serve creates a new installation.",
    )


def require_installation(settings: Settings) -> None:
    """Raise if there is no installation here.

    Only some commands create one: serve, migrate, demo, restore.
    """
    if (missing := find_missing_installation(settings)) is not None:
        raise missing


def require_schema(settings: Settings, revision: str | None) -> None:
    """Raise if the database server holds no installation."""
    if revision is None:
        url = make_url(settings.effective_database_url)
        where = (
            url.database
            if settings.dialect == "sqlite"
            else f"{url.host or 'localhost'}:{url.port or ''}/{url.database}"
        )
        raise ConfigurationError(
            problem=f"There's no installation in the database {where}: it is empty.",
            remedy=(
                f"Correct REFRACT_DATABASE_URL, or run refract migrate to fill it. {LOCATION_HINT}."
            ),
        )


def record_address(settings: Settings) -> None:
    """Save the address of this server, for commands that print addresses."""
    path = settings.data_dir / _ADDRESS_FILE
    draft = path.with_name(f".{_ADDRESS_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        draft.touch(mode=0o600)
        draft.write_text(
            json.dumps({"url": settings.public_url, "signin_links": settings.signin_links_allowed})
        )
        draft.replace(path)
    except OSError as exc:  # a full disk is no reason not to serve
        structlog.get_logger("refract.server").warning(
            "address_recording_failed", path=str(path), reason=exc.strerror
        )
        draft.unlink(missing_ok=True)


def read_address(settings: Settings) -> ServedAddress | None:
    """Return the address of the last server started on this data directory, if known."""
    try:
        found = json.loads((settings.data_dir / _ADDRESS_FILE).read_text())
        return ServedAddress(str(found["url"]), bool(found["signin_links"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
