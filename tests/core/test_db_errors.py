"""Translation of database errors.

Finding: a wrong password and a missing right were errors of ours (500).
"""

import errno
import sqlite3

import asyncmy.errors
import asyncpg
import pytest
from sqlalchemy.exc import DatabaseError, DBAPIError, OperationalError, ProgrammingError

from refract.core.db.errors import format_driver_error, is_permission_denied, translate_db_error
from refract.core.errors import StoreAccessDenied, StoreBusy, StoreDamaged, StoreFull, Unavailable


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (asyncpg.InvalidPasswordError("wrong"), StoreAccessDenied),
        (asyncpg.InvalidAuthorizationSpecificationError("role may not log in"), StoreAccessDenied),
        (
            asyncpg.InsufficientPrivilegeError("permission denied for table links"),
            StoreAccessDenied,
        ),
        (asyncpg.InvalidCatalogNameError("no such database"), StoreAccessDenied),
        (asyncpg.DeadlockDetectedError("deadlock"), StoreBusy),
        (asyncpg.DiskFullError("full"), StoreFull),
        (sqlite3.OperationalError("database or disk is full"), StoreFull),
        (sqlite3.OperationalError("database is locked"), StoreBusy),
        (asyncmy.errors.OperationalError(1045, "Access denied for user"), StoreAccessDenied),
        (asyncmy.errors.OperationalError(1142, "SELECT command denied"), StoreAccessDenied),
        (PermissionError(errno.EACCES, "Permission denied"), StoreAccessDenied),
        (OSError(errno.ENOSPC, "No space left"), StoreFull),
        (
            OperationalError("SELECT 1", None, Exception("unable to open database file")),
            StoreAccessDenied,
        ),
        (
            OperationalError("UPDATE x", None, Exception("attempt to write a readonly database")),
            StoreAccessDenied,
        ),
        (
            DatabaseError("SELECT 1", None, Exception("database disk image is malformed")),
            StoreDamaged,
        ),
        (DatabaseError("SELECT 1", None, Exception("file is not a database")), StoreDamaged),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value)[:40],
)
def test_what_an_operator_can_heal_is_503_with_a_reason(
    error: BaseException, word: type[Unavailable]
) -> None:
    found = translate_db_error(error)

    assert type(found) is word
    assert found.status == 503


def test_the_reason_names_neither_the_user_nor_the_password() -> None:
    found = translate_db_error(
        asyncpg.InvalidPasswordError('password authentication failed for user "canary"')
    )

    assert found is not None
    assert "canary" not in found.message


def test_a_missing_right_is_told_apart_from_a_wrong_password() -> None:
    assert is_permission_denied(asyncpg.InsufficientPrivilegeError("must be owner of table links"))
    assert not is_permission_denied(asyncpg.InvalidPasswordError("wrong"))


def test_what_the_database_said_is_one_line_without_the_statement() -> None:
    error = ProgrammingError(
        "ALTER TABLE canary",
        None,
        Exception("<class 'x.Y'>: relation does not exist.\nHINT: look again"),
    )

    assert isinstance(error, DBAPIError)
    assert format_driver_error(error) == "relation does not exist"
