"""Statements for least-privilege database users of each role.

Table names come from the schema itself, so a table that a later release adds is granted by running
the statements again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

GrantDialect = Literal["postgresql", "mysql"]
DatabaseAccount = Literal["web", "redirect", "ingest"]
DATABASE_ACCOUNTS: tuple[DatabaseAccount, ...] = ("web", "redirect", "ingest")

SCHEMA_TABLES = ("alembic_version", "schema_requirements")
"""Tables that every role reads to compare its code with the schema."""
INGEST_READ_TABLES = ("link_owners", "link_groups")
"""Tables that the ingester only reads, to add up the clicks of all links of a user."""
READ_WRITE = "SELECT, INSERT, UPDATE, DELETE"


@dataclass(frozen=True, slots=True)
class DatabaseGrants:
    """The privileges of the database users of all roles.

    `PREFIX_web` (web and worker), `PREFIX_redirect` (reads what redirects need, counts those of
    links with a limit) and `PREFIX_ingest` (only clicks).
    """

    server: GrantDialect
    database: str
    tables: Sequence[str]
    redirect_tables: Sequence[str]
    ingest_tables: Sequence[str]
    limit_tables: Sequence[str]
    prefix: str = "refract"
    host: str = "%"

    def iter_statements(self, passwords: dict[DatabaseAccount, str] | None = None) -> Iterator[str]:
        """Yield the statements, which can be run again.

        Without passwords, existing users stay unchanged, and new ones cannot sign in until they get
        one. Privileges are revoked and granted again, on PostgreSQL in one transaction. MariaDB has
        no transactions for privileges: it commits each statement.
        """
        for account in DATABASE_ACCOUNTS:
            yield from self._iter_user_statements(account, (passwords or {}).get(account))
        for account in DATABASE_ACCOUNTS:
            yield from self._iter_grant_statements(account)

    def iter_script(self, passwords: dict[DatabaseAccount, str] | None = None) -> Iterator[str]:
        """Yield the statements for a database shell, which needs an explicit transaction."""
        yield from (("BEGIN",) if self.server == "postgresql" else ())
        yield from self.iter_statements(passwords)
        yield from (("COMMIT",) if self.server == "postgresql" else ())

    def _iter_user_statements(
        self, account: DatabaseAccount, password: str | None
    ) -> Iterator[str]:
        name = f"{self.prefix}_{account}"
        if self.server == "postgresql":
            exists = f"SELECT FROM pg_roles WHERE rolname = {_quote_text(name)}"
            yield (
                f"DO $do$ BEGIN IF NOT EXISTS ({exists}) THEN CREATE ROLE {_quote_identifier(name)}"
                " LOGIN; END IF; END $do$"
            )
            if password is not None:
                yield f"ALTER ROLE {_quote_identifier(name)} PASSWORD {_quote_text(password)}"
        else:
            yield f"CREATE USER IF NOT EXISTS {self._format_mysql_user(account)} ACCOUNT LOCK"
            if password is not None:
                yield (
                    f"ALTER USER {self._format_mysql_user(account)} IDENTIFIED BY"
                    f" {_quote_text(password)} ACCOUNT UNLOCK"
                )

    def _iter_grant_statements(self, account: DatabaseAccount) -> Iterator[str]:
        if self.server == "postgresql":
            yield from self._iter_postgresql_grants(account)
        else:
            yield from self._iter_mysql_grants(account)

    def _iter_postgresql_grants(self, account: DatabaseAccount) -> Iterator[str]:
        user = _quote_identifier(f"{self.prefix}_{account}")
        yield f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {user}"
        yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {user}"
        yield f"GRANT CONNECT ON DATABASE {_quote_identifier(self.database)} TO {user}"
        yield f"GRANT USAGE ON SCHEMA public TO {user}"
        yield (
            "GRANT SELECT ON"
            f" {_join_names(map(_quote_identifier, self._list_readable_tables(account)))} TO {user}"
        )
        if written := self._list_writable_tables(account):
            yield f"GRANT {READ_WRITE} ON {_join_names(map(_quote_identifier, written))} TO {user}"
            yield f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {user}"

    def _iter_mysql_grants(self, account: DatabaseAccount) -> Iterator[str]:
        user, database = self._format_mysql_user(account), _quote_mysql_identifier(self.database)
        yield f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {user}"
        written = self._list_writable_tables(account)
        for table in self._list_readable_tables(account):
            yield (
                f"GRANT {READ_WRITE if table in written else 'SELECT'} ON"
                f" {database}.{_quote_mysql_identifier(table)} TO {user}"
            )

    def _list_readable_tables(self, account: DatabaseAccount) -> Sequence[str]:
        chosen = {
            "web": self.tables,
            "ingest": [*self.ingest_tables, *INGEST_READ_TABLES],
            "redirect": self.redirect_tables,
        }[account]
        return [*chosen, *(table for table in SCHEMA_TABLES if table not in chosen)]

    def _list_writable_tables(self, account: DatabaseAccount) -> Sequence[str]:
        return {
            "web": self.tables,
            "ingest": self.ingest_tables,
            "redirect": self.limit_tables,
        }[account]

    def _format_mysql_user(self, account: DatabaseAccount) -> str:
        return f"{_quote_text(f'{self.prefix}_{account}')}@{_quote_text(self.host)}"


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names)


def _quote_text(text: str) -> str:
    """Quote text for SQL. Backslashes are refused: the two servers treat them differently."""
    if "\\" in text or not text.isprintable():
        problem = "neither a backslash nor a control character can stand here"
        raise ValueError(problem)
    return "'" + text.replace("'", "''") + "'"


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_mysql_identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
