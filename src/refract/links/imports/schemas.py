"""Schemas of imports of links."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from refract.core.phrases import Phrase
from refract.core.schemas import Id, InputSchema, explain_errors
from refract.imports.models import ImportRun
from refract.imports.schemas import ImportProgress, ImportRowOut
from refract.links.imports.formats import LinkFileFormat
from refract.links.imports.importer import NameConflictPolicy
from refract.links.imports.remote import RemoteSystem


class LinkImportOut(ImportProgress):
    """An import of links and its progress."""

    kind: LinkFileFormat
    dry_run: bool = Field(
        description="The counts and rows are what an import would do. Nothing was created."
    )
    on_conflict: NameConflictPolicy
    skipped: int = Field(description="Rows whose name has another destination here.")
    kept: int = Field(description="Links that a roll-back left, because they were changed since.")
    columns: Mapping[str, str] = Field(
        description="In a table of an unknown system: each field and the heading it is read from.",
        examples=[{"destination": "long url", "code": "alias"}],
    )
    unread: Sequence[str] = Field(description="Columns of the file that are not imported.")

    @classmethod
    def from_import(cls, import_run: ImportRun) -> Self:
        """Return an import that was started."""
        options = import_run.options or {}
        conflict = options.get("conflict", NameConflictPolicy.SKIP)
        columns, unread = options.get("columns", {}), options.get("unread", [])
        facts = {"on_conflict": conflict, "columns": columns, "unread": unread}
        return cls.model_validate(cls.list_values(import_run) | facts)


class RemoteImportCreate(InputSchema):
    """A running installation whose links are imported."""

    system: RemoteSystem
    url: str = Field(
        max_length=2_000,
        description="Its public URL, without the path of its API.",
        examples=["https://s.example.com"],
    )
    key: Annotated[
        str,
        StringConstraints(max_length=200, pattern=r"^[!-~]+$"),
        explain_errors(Phrase("Enter an API key.")),
    ] = Field(
        description="An API key there; of YOURLS, the signature. Erased after the last page.",
        examples=["0b4e6b4e-1f9f-4c4d-9c3b-3c8d0a0f5f5e"],
    )
    on_conflict: NameConflictPolicy = NameConflictPolicy.SKIP
    dry_run: bool = False


class LinkImportRow(ImportRowOut):
    link_id: Id | None
