"""Least-privilege database users: what each role may do, as statements for the server.

Names of tables come from the schema itself, so a table that a later release adds is granted by running the statements again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Server = Literal["postgresql", "mysql"]
Account = Literal["web", "redirect", "ingest"]
ACCOUNTS: tuple[Account, ...] = ("web", "redirect", "ingest")

SCHEMA_TABLES = ("alembic_version", "schema_requirements")
"""Every role compares its code with the schema."""
READ_WRITE = "SELECT, INSERT, UPDATE, DELETE"


@dataclass(frozen=True, slots=True)
class Grants:
    """Users `PREFIX_web` (web and worker), `PREFIX_redirect` (reads what redirects need) and `PREFIX_ingest` (clicks and nothing else)."""

    server: Server
    database: str
    tables: Sequence[str]
    redirect_tables: Sequence[str]
    ingest_tables: Sequence[str]
    prefix: str = "refract"
    host: str = "%"

    def statements(self, passwords: dict[Account, str] | None = None) -> Iterator[str]:
        """Safe to run again. Without passwords the users stay as they are, or are made unable to sign in until they get one.

        Rights are taken away and given anew, on PostgreSQL in one transaction. MariaDB has none for rights: it commits each statement.
        """
        for account in ACCOUNTS:
            yield from self._user(account, (passwords or {}).get(account))
        for account in ACCOUNTS:
            yield from self._rights(account)

    def script(self, passwords: dict[Account, str] | None = None) -> Iterator[str]:
        """Return the statements for a terminal of the server itself, which knows no transaction unless told."""
        yield from (("BEGIN",) if self.server == "postgresql" else ())
        yield from self.statements(passwords)
        yield from (("COMMIT",) if self.server == "postgresql" else ())

    def _user(self, account: Account, password: str | None) -> Iterator[str]:
        name = f"{self.prefix}_{account}"
        if self.server == "postgresql":
            exists = f"SELECT FROM pg_roles WHERE rolname = {_text(name)}"
            yield f"DO $do$ BEGIN IF NOT EXISTS ({exists}) THEN CREATE ROLE {_double(name)} LOGIN; END IF; END $do$"
            if password is not None:
                yield f"ALTER ROLE {_double(name)} PASSWORD {_text(password)}"
        else:
            yield f"CREATE USER IF NOT EXISTS {self._mysql_user(account)} ACCOUNT LOCK"
            if password is not None:
                yield f"ALTER USER {self._mysql_user(account)} IDENTIFIED BY {_text(password)} ACCOUNT UNLOCK"

    def _rights(self, account: Account) -> Iterator[str]:
        if self.server == "postgresql":
            yield from self._postgresql(account)
        else:
            yield from self._mysql(account)

    def _postgresql(self, account: Account) -> Iterator[str]:
        user = _double(f"{self.prefix}_{account}")
        yield f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {user}"
        yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {user}"
        yield f"GRANT CONNECT ON DATABASE {_double(self.database)} TO {user}"
        yield f"GRANT USAGE ON SCHEMA public TO {user}"
        yield f"GRANT SELECT ON {_joined(map(_double, self._read(account)))} TO {user}"
        if written := self._written(account):
            yield f"GRANT {READ_WRITE} ON {_joined(map(_double, written))} TO {user}"
            yield f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {user}"

    def _mysql(self, account: Account) -> Iterator[str]:
        user, database = self._mysql_user(account), _backtick(self.database)
        yield f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {user}"
        written = self._written(account)
        for table in self._read(account):
            yield f"GRANT {READ_WRITE if table in written else 'SELECT'} ON {database}.{_backtick(table)} TO {user}"

    def _read(self, account: Account) -> Sequence[str]:
        chosen = {"web": self.tables, "ingest": self.ingest_tables, "redirect": self.redirect_tables}[account]
        return [*chosen, *(table for table in SCHEMA_TABLES if table not in chosen)]

    def _written(self, account: Account) -> Sequence[str]:
        return {"web": self.tables, "ingest": self.ingest_tables, "redirect": ()}[account]

    def _mysql_user(self, account: Account) -> str:
        return f"{_text(f'{self.prefix}_{account}')}@{_text(self.host)}"


def _joined(names: Iterable[str]) -> str:
    return ", ".join(names)


def _text(text: str) -> str:
    """A text in SQL; a backslash would mean something on one server and nothing on the other."""
    if "\\" in text or not text.isprintable():
        problem = "neither a backslash nor a control character can stand here"
        raise ValueError(problem)
    return "'" + text.replace("'", "''") + "'"


def _double(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _backtick(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
