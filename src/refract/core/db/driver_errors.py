"""Errors of database drivers, by their codes and messages. Loads no database code."""

import errno

from refract.core.errors import (
    StoreAccessDenied,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
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
NO_RIGHT = "this user lacks a right that is needed"
_NO_DATABASE = "there is no such database"
_REFUSED_STATES = {
    "28P01": _NOT_ACCEPTED,
    "28000": _NOT_ACCEPTED,
    "42501": NO_RIGHT,
    "3D000": _NO_DATABASE,
}
_REFUSED_NUMBERS = {
    1044: NO_RIGHT, 1045: _NOT_ACCEPTED, 1049: _NO_DATABASE, 1130: _NOT_ACCEPTED, 1142: NO_RIGHT,
    1143: NO_RIGHT, 1227: NO_RIGHT, 1370: NO_RIGHT, 1410: NO_RIGHT, 1698: _NOT_ACCEPTED,
    1862: _NOT_ACCEPTED,
}  # fmt: skip
_FILE_DENIED = ("unable to open database", "readonly database", "access permission denied")
_DAMAGED = ("disk image is malformed", "file is not a database", "malformed database schema")
_DRIVERS = ("asyncpg", "asyncmy", "sqlite3", "sqlalchemy.dialects.")
_LOST_CONNECTION_ERRORS = {"InterfaceError", "InternalClientError"}
"""Errors that a driver raises for a connection that was closed underneath it."""


def translate_driver_error(error: BaseException) -> Unavailable | None:
    """Return the error for users of an error that SQLAlchemy has not wrapped; None for a bug."""
    if isinstance(error, OSError):
        if error.errno in (errno.EACCES, errno.EPERM):
            return StoreAccessDenied(reason=NO_RIGHT)
        return StoreFull() if error.errno == errno.ENOSPC else StoreUnavailable()
    if not type(error).__module__.startswith(_DRIVERS):
        return None
    state, number, text = get_error_details(error)
    if translated := translate_code(state, number, text):
        return translated
    lost = type(error).__name__ in _LOST_CONNECTION_ERRORS
    return StoreUnavailable() if lost or is_connection_lost(state, number) else None


def is_connection_lost(state: str, number: int) -> bool:
    """Return whether codes of PostgreSQL or MariaDB mean that there is no connection."""
    return number in _GONE_NUMBERS or state.startswith(_GONE_PREFIXES)


def translate_code(state: str, number: int, text: str) -> Unavailable | None:
    """Translate unambiguous codes of PostgreSQL or MariaDB, and SQLite's messages."""
    locked = "database is locked" in text or "database table is locked" in text
    if locked or state in _BUSY_STATES or number in _BUSY_NUMBERS:
        return StoreBusy()
    if "disk is full" in text or state in _FULL_STATES or number in _FULL_NUMBERS:
        return StoreFull()
    if reason := _REFUSED_STATES.get(state) or _REFUSED_NUMBERS.get(number):
        return StoreAccessDenied(reason=reason)
    if any(phrase in text for phrase in _FILE_DENIED):
        return StoreAccessDenied(reason=NO_RIGHT)
    return StoreDamaged() if any(phrase in text for phrase in _DAMAGED) else None


def get_error_details(original: BaseException | None) -> tuple[str, int, str]:
    """Return SQLSTATE, MariaDB's error number and the message, as far as the driver has them."""
    if original is None:
        return "", 0, ""
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None) or ""
    first = original.args[0] if original.args else None
    return str(state), first if isinstance(first, int) else 0, str(original).lower()
