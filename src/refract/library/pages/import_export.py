"""Bringing bookmarks along and taking the library away, in the browser."""

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
from refract.library.imports import Kind
from refract.library.imports.importer import stop_running_import
from refract.library.imports.models import ImportStatus, LibraryImport, RowOutcome
from refract.library.imports.service import (
    get_own_import,
    list_own_imports,
    list_rows,
    preview_file,
    start_import,
    start_rollback,
)
from refract.library.imports.upload import read_upload
from refract.library.queries import items as queries_items
from refract.records.errors import UnreadableFile
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.routing import large_body

router = page_router()
IMPORTS_PATH = "/app/library/imports"
PAGE_SIZE = 50
MAX_SHOWN_ROWS = 50
"""Rows of a trial that a page shows, of those that would not come."""
FORM_OVERHEAD_BYTES = 8 * 1024
"""Bytes of a form beside the file in it, at most."""
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
    kind: Annotated[str, Form(max_length=20)] = Kind.AUTO,
    try_out: Annotated[str, Form(max_length=5)] = "",
) -> Response:
    """Begin an import, or only say what would become of the file."""
    if file is None or not file.filename:
        return await _render_page(
            request, actor, rt, None, status=422, error="Choose a file first."
        )
    name = file.filename[:255]
    try:
        wanted = Kind(kind) if kind in list(Kind) else Kind.AUTO
        content = await read_upload(
            rt, actor.user.id, await file.read(), wanted, preview=bool(try_out)
        )
    except UnreadableFile as exc:
        return await _render_page(
            request, actor, rt, None, status=422, error=exc.message, kind=kind
        )
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
            trial_rows=trial.rows[:MAX_SHOWN_ROWS],
        )
    async with rt.db.write() as session:
        number = (await start_import(session, rt, actor.user, content, name)).id
    return RedirectResponse(f"{IMPORTS_PATH}/{number}", 303)


@router.get("/app/library/imports/{import_id}")
async def import_page(
    import_id: Id,
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    cursor: CursorParam = None,
    outcome: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """How far an import is, and what became of each row."""
    only = RowOutcome(outcome) if outcome in list(RowOutcome) else None
    async with rt.db.read() as session:
        one = await get_own_import(session, actor.user.id, import_id)
        page = await list_rows(session, CursorCodec(rt.secret), import_id, only, PAGE_SIZE, cursor)
        waiting = await queries_items.count_pending_items(session, actor.user.id)
    response = render_response(
        request,
        actor,
        "library/import.html",
        page_title=one.name or "An import",
        one=one,
        under_way=one.status in ACTIVE_STATUSES,
        done=one.created + one.existing + one.refused,
        rows=page.items,
        outcome=only or "",
        review_waiting=waiting,
        address=lambda **changes: _build_url(one, changes),
        next_url=(
            _build_url(one, {"outcome": only, "cursor": page.next_cursor})
            if page.next_cursor
            else None
        ),
        first_url=_build_url(one, {"outcome": only}) if cursor else None,
    )
    if "hx-request" in request.headers and one.status not in ACTIVE_STATUSES:
        response.headers[
            "HX-Refresh"
        ] = (  # it has ended since the page was made: what can be done with it is something else now
            "true"
        )
    return response


@router.post("/app/library/imports/{import_id}/stop")
async def stop_import(import_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Go no further; what is done stays."""
    async with rt.db.write() as session:
        await stop_running_import(
            session, await get_own_import(session, actor.user.id, import_id), rt.clock.now()
        )
    response = RedirectResponse(f"{IMPORTS_PATH}/{import_id}", 303)
    flash.add(response, rt, "Stopped. Bring the file again to go on.")
    return response


@router.post("/app/library/imports/{import_id}/rollback")
async def roll_back_import(import_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Remove everything that the import brought."""
    response = RedirectResponse(f"{IMPORTS_PATH}/{import_id}", 303)
    try:
        async with rt.db.write() as session:
            await start_rollback(session, rt, actor.user, import_id)
    except Conflict as exc:
        flash.add(response, rt, exc.message, kind="note")
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
            session, CursorCodec(rt.secret), actor.user.id, PAGE_SIZE, cursor
        )
        waiting = await queries_items.count_pending_items(session, actor.user.id)
    return render_response(
        request,
        actor,
        "library/imports.html",
        status=status,
        page_title="Import and export",
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


def _build_url(one: LibraryImport, changes: dict[str, str | None]) -> str:
    query = {name: value for name, value in changes.items() if value}
    return f"{IMPORTS_PATH}/{one.id}?{urlencode(query)}" if query else f"{IMPORTS_PATH}/{one.id}"
