"""Pages to import bookmarks and to export the library."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import File, Form, Query, Request, UploadFile
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict
from refract.core.pagination import CursorCodec
from refract.core.runtime import Runtime
from refract.core.schemas import Id
from refract.identity.authentication import Caller
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.identity.responses import render_response
from refract.imports.models import ImportRow, ImportRun, ImportStatus, ImportSubject, RowOutcome
from refract.imports.service import (
    get_own_import,
    list_own_imports,
    list_rows,
    start_rollback,
    stop_running_import,
)
from refract.library.imports import BookmarkFileFormat
from refract.library.imports.messages import translate_place, translate_problem
from refract.library.imports.service import PreviewRow, preview_file, start_import
from refract.library.imports.upload import read_upload
from refract.library.queries import items as queries_items
from refract.records.errors import UnreadableFile
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.i18n import gettext, translate_error
from refract.web.routing import large_body

router = page_router()
_SUBJECT = ImportSubject.LIBRARY
IMPORTS_PATH = "/app/library/imports"
PAGE_SIZE = 50
MAX_SHOWN_ROWS = 50
"""Rows to skip that the page of a preview shows."""
FORM_OVERHEAD_BYTES = 8 * 1024
"""Bytes that a form may have besides its file."""
ACTIVE_STATUSES = (ImportStatus.RUNNING, ImportStatus.ROLLING_BACK)


@router.get("/app/library/imports")
async def imports_page(
    request: Request, actor: ReadCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    return await _render_page(request, actor, rt, cursor)


@router.post("/app/library/imports")
@large_body
async def import_bookmarks(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    file: Annotated[UploadFile | None, File()] = None,
    kind: Annotated[str, Form(max_length=20)] = BookmarkFileFormat.AUTO,
    try_out: Annotated[str, Form(max_length=5)] = "",
) -> Response:
    """Start an import, or preview it."""
    if file is None or not file.filename:
        return await _render_page(
            request, actor, rt, None, status=422, error=gettext("Choose a file.")
        )
    name = file.filename[:255]
    try:
        file_format = (
            BookmarkFileFormat(kind)
            if kind in list(BookmarkFileFormat)
            else BookmarkFileFormat.AUTO
        )
        content = await read_upload(
            rt, actor.user.id, await file.read(), file_format, preview=bool(try_out)
        )
    except UnreadableFile as exc:
        message = translate_problem(exc.message)
        return await _render_page(request, actor, rt, None, status=422, error=message, kind=kind)
    if try_out:
        async with rt.db.read() as session:
            trial = await preview_file(
                session, actor.user.id, content, rt.clock.now(), only_left_out=True
            )
        return await _render_page(
            request,
            actor,
            rt,
            None,
            kind=kind,
            trial=trial,
            trial_name=name,
            trial_rows=[_show_row(row) for row in trial.rows[:MAX_SHOWN_ROWS]],
        )
    async with rt.db.write() as session:
        started = await start_import(session, rt, actor.user, content, name)
        path = f"{IMPORTS_PATH}/{started.id}"
    return RedirectResponse(path, 303)


@router.get("/app/library/imports/{import_id}")
async def import_page(
    import_id: Id,
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    cursor: CursorParam = None,
    outcome: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Show the progress of an import and the result of each row."""
    only = RowOutcome(outcome) if outcome in list(RowOutcome) else None
    async with rt.db.read() as session:
        shown = await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        page = await list_rows(session, CursorCodec(rt.secret), import_id, only, PAGE_SIZE, cursor)
        waiting = await queries_items.count_pending_items(session, actor.user.id)
    response = render_response(
        request,
        actor,
        "library/import.html",
        page_title=shown.name or gettext("Untitled import"),
        one=shown,
        under_way=shown.status in ACTIVE_STATUSES,
        done=shown.done,
        rows=[_show_row(row) for row in page.items],
        outcome=only or "",
        review_waiting=waiting,
        address=lambda **changes: _build_url(shown, changes),
        next_url=(
            _build_url(shown, {"outcome": only, "cursor": page.next_cursor})
            if page.next_cursor
            else None
        ),
        first_url=_build_url(shown, {"outcome": only}) if cursor else None,
    )
    if "hx-request" in request.headers and shown.status not in ACTIVE_STATUSES:
        # It ended after the page was made: its actions are different now.
        response.headers["HX-Refresh"] = "true"
    return response


@router.post("/app/library/imports/{import_id}/stop")
async def stop_import(import_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Stop an import; items that were imported stay."""
    async with rt.db.write() as session:
        await stop_running_import(
            session,
            await get_own_import(session, actor.user.id, _SUBJECT, import_id),
            rt.clock.now(),
        )
    response = RedirectResponse(f"{IMPORTS_PATH}/{import_id}", 303)
    flash.add(response, rt, gettext("Import stopped. Upload the file again to resume."))
    return response


@router.post("/app/library/imports/{import_id}/rollback")
async def roll_back_import(import_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Remove everything that was imported."""
    response = RedirectResponse(f"{IMPORTS_PATH}/{import_id}", 303)
    try:
        async with rt.db.write() as session:
            await start_rollback(session, rt, actor.user, _SUBJECT, import_id)
    except Conflict as exc:
        flash.add(response, rt, translate_error(exc), kind="note")
    return response


async def _render_page(
    request: Request,
    actor: Caller,
    rt: Runtime,
    cursor: str | None,
    *,
    status: int = 200,
    **more: Any,
) -> Response:
    async with rt.db.read() as session:
        page = await list_own_imports(
            session, CursorCodec(rt.secret), actor.user.id, _SUBJECT, PAGE_SIZE, cursor
        )
        waiting = await queries_items.count_pending_items(session, actor.user.id)
    return render_response(
        request,
        actor,
        "library/imports.html",
        status=status,
        page_title=gettext("Import and export"),
        imports=page.items,
        most=rt.settings.max_body_bytes - FORM_OVERHEAD_BYTES,
        review_waiting=waiting,
        next_url=(
            f"{IMPORTS_PATH}?{urlencode({'cursor': page.next_cursor})}"
            if page.next_cursor
            else None
        ),
        first_url=IMPORTS_PATH if cursor else None,
        **more,
    )


def _show_row(row: ImportRow | PreviewRow) -> dict[str, Any]:
    return {
        "place": translate_place(row.place),
        "shown": row.shown,
        "outcome": row.outcome,
        "why": translate_problem(row.why) if row.why else None,
        "item_id": row.item_id,
    }


def _build_url(shown: ImportRun, changes: dict[str, str | None]) -> str:
    query = {name: value for name, value in changes.items() if value}
    path = f"{IMPORTS_PATH}/{shown.id}"
    return f"{path}?{urlencode(query)}" if query else path
