"""Translation of driver errors into errors for users and operators."""

import re
from typing import cast

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from refract.core.db.driver_errors import (
    NO_RIGHT,
    get_error_details,
    is_connection_lost,
    translate_code,
    translate_driver_error,
)
from refract.core.errors import (
    ConfigurationError,
    RefractError,
    StoreAccessDenied,
    StoreOverloaded,
    StoreUnavailable,
    StoreUnreachable,
    Unavailable,
)


def translate_db_error(error: BaseException) -> Unavailable | None:
    """Return the error for users if time or an operator can fix it; None for a bug."""
    if isinstance(error, PoolTimeout):
        return StoreOverloaded()  # The caller has waited already, so there is no retry.
    if isinstance(error, IntegrityError):
        return None
    if isinstance(error, DBAPIError):
        return _translate_dbapi_error(error)
    return translate_driver_error(error)


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
    return isinstance(translated, StoreAccessDenied) and translated.facts["reason"] == NO_RIGHT


def _translate_dbapi_error(error: DBAPIError) -> Unavailable | None:
    state, number, text = get_error_details(cast("BaseException | None", error.orig))
    if translated := translate_code(state, number, text):
        return translated
    if (
        error.connection_invalidated
        or isinstance(error, InterfaceError)
        or is_connection_lost(state, number)
    ):
        return StoreUnavailable()
    return (
        StoreUnavailable()
        if isinstance(error, OperationalError) and "disk i/o error" in text
        else None
    )
