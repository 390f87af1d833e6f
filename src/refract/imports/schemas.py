"""Schemas that every import shares."""

from datetime import datetime
from typing import Any, Self

from pydantic import Field

from refract.core.schemas import Id, OutputSchema
from refract.imports.models import ImportRun, ImportStatus, RowOutcome


class ImportProgress(OutputSchema):
    """An import and its progress."""

    id: Id | None
    kind: str
    name: str | None
    status: ImportStatus | None = Field(description="Null for a dry run.")
    total: int
    created: int
    existing: int
    refused: int
    waiting: int
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def from_import(cls, import_run: ImportRun) -> Self:
        """Return an import that was started."""
        return cls.model_validate(cls.list_values(import_run))

    @classmethod
    def list_values(cls, import_run: ImportRun) -> dict[str, Any]:
        """Return the values of the fields that are columns of the import."""
        running = import_run.status == ImportStatus.RUNNING
        waiting = import_run.total - import_run.done if running else 0
        names = cls.model_fields.keys() & import_run.__mapper__.columns.keys()
        return {name: getattr(import_run, name) for name in names} | {"waiting": waiting}


class ImportRowOut(OutputSchema):
    number: int
    place: str = Field(description="Place in the file.", examples=["line 12"])
    shown: str
    outcome: RowOutcome
    why: str | None
