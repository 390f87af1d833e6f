"""Translation of driver errors into errors for users and operators."""

import errno
import re
from typing import cast

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from refract.core.errors import (
    ConfigurationError,
    RefractError,
    StoreAccessDenied,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreOverloaded,
    StoreUnavailable,
    StoreUnreachable,
    Unavailable,
)

# Serialisation, deadlock, lock not available, statement timeout.
_BUSY_STATES = {"40001", "40P01", "55P03", "57014"}
_BUSY_NUMBERS = {1205, 1213, 1020}  # MariaDB: lock wait, deadlock, record changed since last read
_FULL_STATES = {"53100"}
_FULL_NUMBERS = {1021, 1114, 3}
_GONE_NUMBERS = {1040, 1053, 1152, 1927, 2002, 2003, 2006, 2013, 2055, 4031}
_GONE_PREFIXES = ("08", "57P", "53300")
_NOT_ACCEPTED = "the password or the user is not accepted"
_NO_RIGHT = "this user lacks a right that is needed"
_NO_DATABASE = "there is no such database"
_REFUSED_STATES = {
    "28P01": _NOT_ACCEPTED,
    "28000": _NOT_ACCEPTED,
    "42501": _NO_RIGHT,
    "3D000": _NO_DATABASE,
}
_REFUSED_NUMBERS = {
    1044: _NO_RIGHT, 1045: _NOT_ACCEPTED, 1049: _NO_DATABASE, 1130: _NOT_ACCEPTED, 1142: _NO_RIGHT,
    1143: _NO_RIGHT, 1227: _NO_RIGHT, 1370: _NO_RIGHT, 1410: _NO_RIGHT, 1698: _NOT_ACCEPTED,
    1862: _NOT_ACCEPTED,
}  # fmt: skip
_FILE_DENIED = ("unable to open database", "readonly database", "access permission denied")
_DAMAGED = ("disk image is malformed", "file is not a database", "malformed database schema")
_DRIVERS = ("asyncpg", "asyncmy", "sqlite3", "sqlalchemy.dialects.")
_LOST_CONNECTION_ERRORS = {"InterfaceError", "InternalClientError"}
"""Errors that a driver raises for a connection that was closed underneath it."""


def translate_db_error(error: BaseException) -> Unavailable | None:
    """Return the error for users if time or an operator can fix it; None for a bug."""
    if isinstance(error, PoolTimeout):
        return StoreOverloaded()  # The caller has waited already, so there is no retry.
    if isinstance(error, OSError):
        if error.errno in (errno.EACCES, errno.EPERM):
            return StoreAccessDenied(reason=_NO_RIGHT)
        return StoreFull() if error.errno == errno.ENOSPC else StoreUnavailable()
    if isinstance(error, IntegrityError):
        return None
    if isinstance(error, DBAPIError):
        return _translate_dbapi_error(error)
    return (
        _translate_unwrapped_error(error) if type(error).__module__.startswith(_DRIVERS) else None
    )


def explain_connection_error(url: URL, error: BaseException) -> RefractError | None:
    """Explain to an operator which database could not be opened, and why. Never the password."""
    where = (
        url.database or ""
        if url.get_backend_name() == "sqlite"
        else f"{url.host or 'localhost'}:{url.port or ''}/{url.database or ''}"
    )
    translated = translate_db_error(error)
    if isinstance(translated, StoreUnavailable):
        return StoreUnreachable(where=where)
    if not isinstance(translated, StoreAccessDenied) and (
        translated is not None or not isinstance(error, DBAPIError)
    ):
        return translated
    reason = format_driver_error(error)
    return ConfigurationError(
        problem=f"The database {where} cannot be used: {reason}.",
        remedy="Put that right, or correct REFRACT_DATABASE_URL.",
    )


def format_driver_error(error: BaseException) -> str:
    """Return the database's message in one line, without the statement or its values."""
    cause: object = error
    while isinstance(cause, DBAPIError) and cause.orig is not None:
        cause = cause.orig
    text = cause.args[-1] if isinstance(cause, BaseException) and cause.args else cause
    line = (str(text).strip().splitlines() or [type(error).__name__])[0]
    return re.sub(r"^<class '[^']+'>: ", "", line).rstrip(".")


def is_permission_denied(error: BaseException) -> bool:
    """Return whether the database user lacks a privilege."""
    translated = translate_db_error(error)
    return isinstance(translated, StoreAccessDenied) and translated.facts["reason"] == _NO_RIGHT


def _translate_unwrapped_error(error: BaseException) -> Unavailable | None:
    """Translate an error of the driver that SQLAlchemy has not wrapped."""
    state, number, text = _get_error_details(error)
    if translated := _translate_code(state, number, text):
        return translated
    gone = (
        number in _GONE_NUMBERS
        or state.startswith(_GONE_PREFIXES)
        or type(error).__name__ in _LOST_CONNECTION_ERRORS
    )
    return StoreUnavailable() if gone else None


def _translate_dbapi_error(error: DBAPIError) -> Unavailable | None:
    state, number, text = _get_error_details(cast("BaseException | None", error.orig))
    if translated := _translate_code(state, number, text):
        return translated
    if (
        error.connection_invalidated
        or isinstance(error, InterfaceError)
        or number in _GONE_NUMBERS
        or state.startswith(_GONE_PREFIXES)
    ):
        return StoreUnavailable()
    return (
        StoreUnavailable()
        if isinstance(error, OperationalError) and "disk i/o error" in text
        else None
    )


def _translate_code(state: str, number: int, text: str) -> Unavailable | None:
    """Translate unambiguous codes of PostgreSQL or MariaDB, and SQLite's messages."""
    locked = "database is locked" in text or "database table is locked" in text
    if locked or state in _BUSY_STATES or number in _BUSY_NUMBERS:
        return StoreBusy()
    if "disk is full" in text or state in _FULL_STATES or number in _FULL_NUMBERS:
        return StoreFull()
    if reason := _REFUSED_STATES.get(state) or _REFUSED_NUMBERS.get(number):
        return StoreAccessDenied(reason=reason)
    if any(phrase in text for phrase in _FILE_DENIED):
        return StoreAccessDenied(reason=_NO_RIGHT)
    return StoreDamaged() if any(phrase in text for phrase in _DAMAGED) else None


def _get_error_details(original: BaseException | None) -> tuple[str, int, str]:
    """Return SQLSTATE, MariaDB's error number and the message, as far as the driver has them."""
    if original is None:
        return "", 0, ""
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None) or ""
    first = original.args[0] if original.args else None
    return str(state), first if isinstance(first, int) else 0, str(original).lower()
