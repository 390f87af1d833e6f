"""Schemas of imports."""

from datetime import datetime
from typing import Self

from pydantic import Field

from refract.core.schemas import Id, OutputSchema
from refract.library.imports.formats import BookmarkFileFormat
from refract.library.imports.models import ImportStatus, LibraryImport


class ImportOut(OutputSchema):
    """An import and its progress."""

    id: Id | None
    kind: BookmarkFileFormat
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
    def from_import(cls, library_import: LibraryImport) -> Self:
        """Return an import that was started."""
        done = library_import.created + library_import.existing + library_import.refused
        running = library_import.status == ImportStatus.RUNNING
        return cls(
            id=library_import.id,
            kind=BookmarkFileFormat(library_import.kind),
            name=library_import.name,
            status=ImportStatus(library_import.status),
            total=library_import.total,
            created=library_import.created,
            existing=library_import.existing,
            refused=library_import.refused,
            waiting=library_import.total - done if running else 0,
            created_at=library_import.created_at,
            finished_at=library_import.finished_at,
        )
