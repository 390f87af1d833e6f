"""What a database driver's error means for the person who waits."""

import errno
from typing import cast

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from refract.core.errors import (
    ConfigurationError,
    RefractError,
    StoreBusy,
    StoreCrowded,
    StoreFull,
    StoreUnavailable,
    StoreUnreachable,
    Unavailable,
)

_BUSY_STATES = {"40001", "40P01", "55P03", "57014"}  # serialisation, deadlock, lock not available, statement time-out
_BUSY_NUMBERS = {1205, 1213, 1020}  # MariaDB: lock wait, deadlock, record changed since last read
_FULL_STATES = {"53100"}
_FULL_NUMBERS = {1021, 1114, 3}
_GONE_NUMBERS = {1040, 1053, 1152, 1927, 2002, 2003, 2006, 2013, 2055, 4031}
_GONE_PREFIXES = ("08", "57P", "53300")
_DENIED_NUMBERS = {1044, 1142, 1143, 1227, 1370, 1410}
_DRIVERS = ("asyncpg", "asyncmy", "sqlalchemy.dialects.")
_CONFUSED = {"InterfaceError", "InternalClientError"}
"""What a driver says of a connection that was taken away from under it."""


def meaning(error: BaseException) -> Unavailable | None:
    """The product's word for an error that time or an operator can heal; None for one that is ours."""
    if isinstance(error, PoolTimeout):
        return StoreCrowded()  # whoever hears of this has waited already: nobody tries again for them
    if isinstance(error, OSError):
        return StoreFull() if error.errno == errno.ENOSPC else StoreUnavailable()
    if isinstance(error, IntegrityError):
        return None
    if isinstance(error, DBAPIError):
        return _of_driver(error)
    return _of_driver_itself(error) if type(error).__module__.startswith(_DRIVERS) else None


def is_denied(error: DBAPIError) -> bool:
    """Return whether the database user lacks the right to a statement."""
    state, number, _ = _facts(cast("BaseException | None", error.orig))
    return state == "42501" or number in _DENIED_NUMBERS


def at_first_contact(url: URL, error: BaseException) -> RefractError | None:
    """What to tell an operator whose database could not even be opened: which one, and why. Never the password."""
    where = url.database or "" if url.get_backend_name() == "sqlite" else f"{url.host or 'localhost'}:{url.port or ''}/{url.database or ''}"
    word = meaning(error)
    if isinstance(word, StoreUnavailable):
        return StoreUnreachable(where=where)
    if word is not None or not isinstance(error, DBAPIError):
        return word
    reason = str(error.orig.args[-1] if error.orig is not None and error.orig.args else error.orig).strip().splitlines()[0].rstrip(".")
    return ConfigurationError(
        problem=f"The database {where} cannot be used: {reason}.", remedy="Put that right, or correct REFRACT_DATABASE_URL."
    )


def _of_driver_itself(error: BaseException) -> Unavailable | None:
    """Of calls that go straight to the driver, whose errors nobody has translated."""
    state, number, _ = _facts(error)
    if state in _BUSY_STATES or number in _BUSY_NUMBERS:
        return StoreBusy()
    if state in _FULL_STATES or number in _FULL_NUMBERS:
        return StoreFull()
    gone = number in _GONE_NUMBERS or state.startswith(_GONE_PREFIXES) or type(error).__name__ in _CONFUSED
    return StoreUnavailable() if gone else None


def _of_driver(error: DBAPIError) -> Unavailable | None:
    original = cast("BaseException | None", error.orig)
    state, number, text = _facts(original)
    if state in _BUSY_STATES or number in _BUSY_NUMBERS or "database is locked" in text or "database table is locked" in text:
        return StoreBusy()
    if state in _FULL_STATES or number in _FULL_NUMBERS or "disk is full" in text:
        return StoreFull()
    if error.connection_invalidated or isinstance(error, InterfaceError) or number in _GONE_NUMBERS or state.startswith(_GONE_PREFIXES):
        return StoreUnavailable()
    if isinstance(error, OperationalError) and (
        "unable to open database" in text or "disk i/o error" in text or "readonly database" in text
    ):
        return StoreUnavailable()
    return None


def _facts(original: BaseException | None) -> tuple[str, int, str]:
    """SQLSTATE, MariaDB's error number and the text, whichever of them the driver gives."""
    if original is None:
        return "", 0, ""
    state = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None) or ""
    first = original.args[0] if original.args else None
    return str(state), first if isinstance(first, int) else 0, str(original).lower()
