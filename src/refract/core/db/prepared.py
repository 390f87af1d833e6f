"""Selects of hot paths: built once, and on SQLite run at driver level on the event loop.

There a point read takes microseconds, while SQLAlchemy and a thread journey take hundreds. Only
statements that read a few rows by index run there. Longer ones, those of a snapshot and those of a
write session (unless they return instances) run at driver level in the connection's thread. On
database servers, and wherever statements are observed, SQLAlchemy executes the same statement.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from sqlalchemy import Dialect, Select, inspect
from sqlalchemy.orm import Mapper
from sqlalchemy.orm.util import AliasedClass
from sqlalchemy.sql.compiler import SQLCompiler

PreparedRow = Sequence[Any]
IN_LIST_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
"""Sizes of IN lists, so that there are few shapes of a statement. Lists are padded."""


_ENTITIES = (type, AliasedClass)


class DriverReader(Protocol):
    """A reader that runs a statement of SQLite at driver level."""

    async def fetch_rows(self, statement: str, *values: object) -> Sequence[Sequence[Any]]: ...


class PreparedSelect:
    """A select with named parameters (`bindparam`). A list is one with `expanding=True`.

    It is built on its first use, when all models are known. With `in_thread` it belongs to the
    snapshot of the session and never runs on the event loop.
    """

    def __init__(
        self, build: Callable[[], Select[*tuple[Any, ...]]], *, in_thread: bool = False
    ) -> None:
        self._build = build
        self.in_thread = in_thread
        self._statement: Select[*tuple[Any, ...]] | None = None
        self._shapes: dict[tuple[int, ...], _DriverStatement] = {}

    @property
    def statement(self) -> Select[*tuple[Any, ...]]:
        if self._statement is None:
            self._statement = self._build()
        return self._statement

    @cached_property
    def has_entities(self) -> bool:
        """Return whether the rows contain instances, not only values of columns."""
        described = self.statement.column_descriptions
        return any(isinstance(column["expr"], _ENTITIES) for column in described)

    async def fetch(
        self, reader: DriverReader, dialect: Dialect, values: Mapping[str, Any]
    ) -> list[PreparedRow]:
        """Return the rows: a detached instance for each entity, a value for each column."""
        shape: tuple[int, ...] = ()
        for name, value in values.items():
            if isinstance(value, list):
                if not value:
                    return []
                padded = _pad(value)
                values = {**values, name: padded}
                shape = (*shape, len(padded))
        prepared = self._shapes.get(shape)
        if prepared is None:
            prepared = self._shapes[shape] = _DriverStatement(self.statement, dialect, values)
        rows = await reader.fetch_rows(prepared.sql, *prepared.bind(values))
        return [prepared.build_row(row) for row in rows]


def _pad(values: list[Any]) -> list[Any]:
    """Repeat the last value up to the next size, which does not change what IN matches."""
    size = next(size for size in IN_LIST_SIZES if size >= len(values))
    return values + values[-1:] * (size - len(values))


class _DriverStatement:
    """A statement as the driver takes it, and how its values and rows are converted."""

    def __init__(
        self, statement: Select[*tuple[Any, ...]], dialect: Dialect, values: Mapping[str, Any]
    ) -> None:
        columns: list[Any] = []
        self._parts: list[_EntityBuilder | int] = []
        for described in statement.column_descriptions:
            entity = described["expr"]
            if isinstance(entity, _ENTITIES):
                builder = _EntityBuilder(inspect(entity).mapper, len(columns))
                self._parts.append(builder)
                columns += [getattr(entity, key) for key in builder.keys]
            else:
                self._parts.append(len(columns))
                columns.append(entity)
        self._processors = [
            (number, process)
            for number, column in enumerate(columns)
            if (process := column.type.dialect_impl(dialect).result_processor(dialect, None))
        ]
        plain = statement.with_only_columns(*columns, maintain_column_froms=True)
        compiled = plain.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)  # noqa: S101 - of a select
        expanded = compiled.construct_expanded_state(dict(values))
        self.sql = expanded.statement
        self._binders = [
            _build_binder(
                name, compiled, expanded.parameter_expansion, expanded.parameters, dialect
            )
            for name in expanded.positiontup or ()
        ]

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        return [read(values) for read in self._binders]

    def build_row(self, row: Sequence[Any]) -> PreparedRow:
        cells = list(row)
        for number, process in self._processors:
            cells[number] = process(cells[number])
        return [cells[part] if isinstance(part, int) else part.build(cells) for part in self._parts]


class _EntityBuilder:
    """Builds detached instances of an entity from consecutive columns of a row."""

    def __init__(self, mapper: Mapper[Any], start: int) -> None:
        self.keys = [attribute.key for attribute in mapper.column_attrs]
        self._mapper = mapper
        self._columns = slice(start, start + len(self.keys))
        self._primary_key = [
            mapper.get_property_by_column(column).key for column in mapper.primary_key
        ]

    def build(self, cells: list[Any]) -> Any:
        values = dict(zip(self.keys, cells[self._columns], strict=True))
        key = tuple(values[name] for name in self._primary_key)
        if None in key:
            return None  # of an outer join
        instance = self._mapper.class_manager.new_instance()
        instance.__dict__.update(values)
        inspect(instance).key = self._mapper.identity_key_from_primary_key(key)
        return instance


def _build_binder(
    name: str,
    compiled: SQLCompiler,
    expansion: Mapping[str, list[str]],
    constants: Mapping[str, Any],
    dialect: Dialect,
) -> Callable[[Mapping[str, Any]], Any]:
    """Return a function that reads a positional value from the named ones."""
    for listed, names in expansion.items():
        if name in names:
            position = names.index(name)
            return lambda values: values[listed][position]
    parameter = compiled.binds[name]
    process = parameter.type.dialect_impl(dialect).bind_processor(dialect)
    if parameter.required:  # given by the caller
        return lambda values: process(values[name]) if process else values[name]
    constant = process(constants[name]) if process else constants[name]
    return lambda _values: constant
