"""Column types and the model base, the same on SQLite, PostgreSQL and MariaDB."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, LargeBinary, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator, TypeEngine

from refract.core.clock import EPOCH

MYSQL_COLLATION = "utf8mb4_nopad_bin"
"""Plain `utf8mb4_bin` would treat 'road' and 'road ' as equal."""

TABLE_OPTIONS: dict[str, str] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": MYSQL_COLLATION,
}
"""Options of every table, for migrations.

Models do without: SQLAlchemy would load the dialect of MariaDB to check them.
"""


# The types of MariaDB by their names alone: its dialect would be loaded with every database.
class _MicrosecondDateTime(DateTime):
    __visit_name__ = "DATETIME"
    fsp = 6


class _MediumText(Text):
    __visit_name__ = "MEDIUMTEXT"


class _MediumBlob(LargeBinary):
    __visit_name__ = "MEDIUMBLOB"


class UtcDateTime(TypeDecorator[datetime]):
    """A moment: aware and in UTC in Python, to the microsecond on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(_MicrosecondDateTime())
        return dialect.type_descriptor(DateTime(timezone=dialect.name == "postgresql"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            problem = f"a moment needs a time zone: {value!r}"
            raise ValueError(problem)
        utc = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(
        self,
        value: datetime | None,
        dialect: Dialect,  # noqa: ARG002 - SQLAlchemy
    ) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class UtcSeconds(TypeDecorator[datetime]):
    """A moment without a fraction: aware and in UTC in Python.

    In the database, seconds since 1970.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(
        self,
        value: datetime | None,
        dialect: Dialect,  # noqa: ARG002 - SQLAlchemy
    ) -> int | None:
        return None if value is None else int(value.timestamp())

    def process_result_value(
        self,
        value: int | None,
        dialect: Dialect,  # noqa: ARG002 - SQLAlchemy
    ) -> datetime | None:
        return None if value is None else EPOCH + timedelta(seconds=value)


def text_key(length: int) -> String:
    """Return the type of text that is compared and sorted by its bytes on every database."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def long_text() -> Text:
    """Return the type of text beyond 64 kB, which plain TEXT cuts off on MariaDB."""
    return Text().with_variant(_MediumText(), "mysql", "mariadb")


def long_bytes() -> LargeBinary:
    """Return the type of bytes beyond 64 kB, which plain BLOB cuts off on MariaDB."""
    return LargeBinary().with_variant(_MediumBlob(), "mysql", "mariadb")


class Model(DeclarativeBase):
    """The base of every table."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime(),
        int: BigInteger(),
        dict[str, Any]: JSON(),
        list[str]: JSON(),
    }
