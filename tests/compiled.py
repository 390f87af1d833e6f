"""Compiled statements that outlive the engine of a test, and templates its application.

SQLAlchemy caches what it compiles by dialect, and every engine has a dialect of its own. A server
has one engine and compiles a statement once; tests have thousands and compiled everything again.
It is the same with applications, each of which loads its templates.
"""

from collections.abc import Iterator, MutableMapping
from functools import cache
from typing import Any

from sqlalchemy import Dialect

from refract import app
from refract.core.db.session import Database
from refract.core.db.types import Model
from refract.redirect import frontend
from refract.web.templating import TemplateRenderer


class CompiledStatements(MutableMapping[tuple[Any, ...], Any]):
    """A cache whose keys name a kind of database instead of the dialect of one engine."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[Any, ...], Any] = {}

    def __getitem__(self, key: tuple[Any, ...]) -> Any:
        return self._compiled[_replace_dialect(key)]

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        self._compiled[_replace_dialect(key)] = compiled

    def __delitem__(self, key: tuple[Any, ...]) -> None:
        del self._compiled[_replace_dialect(key)]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._compiled)

    def __len__(self) -> int:
        return len(self._compiled)


def _replace_dialect(key: tuple[Any, ...]) -> tuple[Any, ...]:
    dialect: Dialect = key[0]
    return (dialect.name, dialect.server_version_info, *key[1:])


@cache
def _open_cache() -> CompiledStatements:
    """Return the cache of this process, which mappers use as well when they flush."""
    found = CompiledStatements()
    for mapper in Model.registry.mappers:
        mapper._compiled_cache = found
    return found


def share_compiled_statements(db: Database) -> None:
    for engine in {db.engine, db.read_engine}:
        engine.sync_engine.update_execution_options(compiled_cache=_open_cache())


def share_templates() -> None:
    """Let all applications with the same address use one environment, which none of them changes.

    Loading the templates of a page takes longer than most pages.
    """
    shared = cache(TemplateRenderer)
    for module in (app, frontend):
        module.TemplateRenderer = shared  # type: ignore[attr-defined]
