"""API to import bookmarks and to export the library."""

from datetime import datetime
from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from refract.core.pagination import CursorCodec
from refract.core.schemas import Id, OutputSchema
from refract.identity.concurrency_limits import start_export
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.errors import ExportLimitReached
from refract.imports.errors import ImportClosed, ImportNotFound
from refract.imports.models import ImportSubject, RowOutcome
from refract.imports.schemas import ImportRowOut
from refract.imports.service import (
    get_own_import,
    list_own_imports,
    list_rows,
    start_rollback,
    stop_running_import,
)
from refract.imports.upload import ImportsBusy
from refract.library.export import MEDIA_TYPES, LibraryExportFormat, stream_library
from refract.library.imports import BookmarkFileFormat
from refract.library.imports.schemas import ImportOut
from refract.library.imports.service import ImportPreview, preview_file, start_import
from refract.library.imports.upload import read_upload
from refract.records.errors import UnreadableFile
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems
from refract.web.routing import large_body

router = api_router("/library", "library")
_SUBJECT = ImportSubject.LIBRARY
_FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class ItemImportRow(ImportRowOut):
    item_id: Id | None


class ImportRows(OutputSchema):
    items: list[ItemImportRow]
    next_cursor: str | None


class ImportPage(OutputSchema):
    items: list[ImportOut]
    next_cursor: str | None


class ImportBegun(ImportOut):
    """A started import; for a dry run, the outcome that each row would have."""

    rows: list[ItemImportRow] = Field(description="The rows of a dry run, at most 1,000.")


@router.post(
    "/imports",
    status_code=202,
    responses=problems(UnreadableFile, ImportsBusy)
    | {200: {"model": ImportBegun, "description": "A dry run: nothing was changed."}},
    openapi_extra=_FILE_BODY,
)
@large_body
async def import_file(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    response: Response,
    kind: Annotated[
        BookmarkFileFormat, Query(description="Format of the file; `auto` detects it.")
    ] = BookmarkFileFormat.AUTO,
    name: Annotated[
        str | None,
        Query(max_length=255, description="Name of the import, such as the file's name."),
    ] = None,
    dry_run: Annotated[
        bool, Query(description="Return what would happen, and change nothing.")
    ] = False,
) -> ImportBegun:
    """Import bookmarks: the body is the file.

    Rows become items in the background; URLs already in the library are skipped.
    """
    file = await read_upload(rt, actor.user.id, await request.body(), kind, preview=dry_run)
    if dry_run:
        response.status_code = 200
        async with rt.db.read() as session:
            return _build_preview(
                await preview_file(session, actor.user.id, file, rt.clock.now()),
                name,
                rt.clock.now(),
            )
    async with rt.db.write() as session:
        started = await start_import(session, rt, actor.user, file, name)
        return ImportBegun(**ImportOut.from_import(started).model_dump(), rows=[])


@router.get("/imports")
async def list_imports(
    actor: ReadCaller, rt: Rt, limit: LimitParam = DEFAULT_PAGE_SIZE, cursor: CursorParam = None
) -> ImportPage:
    """List your imports, newest first."""
    async with rt.db.read() as session:
        page = await list_own_imports(
            session, CursorCodec(rt.secret), actor.user.id, _SUBJECT, limit, cursor
        )
    return ImportPage(
        items=[ImportOut.from_import(import_run) for import_run in page.items],
        next_cursor=page.next_cursor,
    )


@router.get("/imports/{import_id}", responses=problems(ImportNotFound))
async def read_import(import_id: Id, actor: ReadCaller, rt: Rt) -> ImportOut:
    """Read the progress of an import."""
    async with rt.db.read() as session:
        return ImportOut.from_import(
            await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        )


@router.get("/imports/{import_id}/rows", responses=problems(ImportNotFound))
async def list_import_rows(
    import_id: Id,
    actor: ReadCaller,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    outcome: Annotated[RowOutcome | None, Query(description="Only rows with this outcome.")] = None,
) -> ImportRows:
    """List the outcome of each row, in the order of the file."""
    async with rt.db.read() as session:
        await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        page = await list_rows(session, CursorCodec(rt.secret), import_id, outcome, limit, cursor)
    return ImportRows(
        items=[ItemImportRow.model_validate(row) for row in page.items],
        next_cursor=page.next_cursor,
    )


@router.post("/imports/{import_id}/stop", responses=problems(ImportNotFound))
async def stop_import(import_id: Id, actor: WriteCaller, rt: Rt) -> ImportOut:
    """Stop an import; imported items stay. Upload the file again to resume."""
    async with rt.db.write() as session:
        return ImportOut.from_import(
            await stop_running_import(
                session,
                await get_own_import(session, actor.user.id, _SUBJECT, import_id),
                rt.clock.now(),
            )
        )


@router.post(
    "/imports/{import_id}/rollback",
    status_code=202,
    responses=problems(ImportNotFound, ImportClosed),
)
async def roll_back_import(import_id: Id, actor: WriteCaller, rt: Rt) -> ImportOut:
    """Undo an import: remove its items, and tags used only by them. A running import is stopped."""
    async with rt.db.write() as session:
        return ImportOut.from_import(
            await start_rollback(session, rt, actor.user, _SUBJECT, import_id)
        )


@router.get("/export", response_class=StreamingResponse, responses=problems(ExportLimitReached))
async def export_library(
    actor: ReadCaller,
    rt: Rt,
    format: Annotated[  # noqa: A002 - name of the parameter
        LibraryExportFormat,
        Query(description="`json` has everything; `html` is a bookmark file for any browser."),
    ] = LibraryExportFormat.JSON,
) -> StreamingResponse:
    """Export your whole library as a file, which `POST /library/imports` can read."""
    name = f"refract-library-{rt.clock.now():%Y-%m-%d}.{format}"
    pieces = (piece.encode() async for piece in stream_library(rt, actor.user.id, format))
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "private, no-store",
    }
    begun = await start_export(rt, actor.user.id, pieces)
    return StreamingResponse(begun, media_type=MEDIA_TYPES[format], headers=headers)


def _build_preview(preview: ImportPreview, name: str | None, now: datetime) -> ImportBegun:
    return ImportBegun(
        id=None,
        kind=preview.kind,
        name=name,
        status=None,
        total=preview.total,
        created=preview.created,
        existing=preview.existing,
        refused=preview.refused,
        waiting=0,
        created_at=now,
        finished_at=None,
        rows=[ItemImportRow.model_validate(row) for row in preview.rows],
    )
