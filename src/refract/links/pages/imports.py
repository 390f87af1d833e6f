"""Pages to move in: choose a source, see what would happen, import, read the report, undo."""

from collections.abc import Mapping
from typing import Annotated, Any, Final
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
from refract.limits.errors import RateLimited
from refract.links.imports.columns import FIELDS
from refract.links.imports.formats import LinkFileFormat
from refract.links.imports.importer import NameConflictPolicy
from refract.links.imports.remote import (
    InvalidSource,
    RemoteImportRunning,
    RemoteSource,
    RemoteSystem,
    check_source_url,
    start_remote_import,
)
from refract.links.imports.runs import read_link_upload, run_tried_import, start_link_import
from refract.links.imports.schemas import LinkImportOut
from refract.records.errors import UnreadableFile
from refract.web import flash
from refract.web.dependencies import CursorParam, Rt, page_router
from refract.web.i18n import gettext, lazy_gettext, translate_error
from refract.web.routing import large_body

router = page_router()
_SUBJECT: Final = ImportSubject.LINKS
IMPORTS_PATH: Final = "/app/links/imports"
PAGE_SIZE: Final = 50
FORM_OVERHEAD_BYTES: Final = 8 * 1024
"""Bytes that a form may have besides its file."""
ACTIVE_STATUSES: Final = (ImportStatus.RUNNING, ImportStatus.ROLLING_BACK)
SOURCE_LABELS: Final = {
    LinkFileFormat.AUTO: lazy_gettext("Detect automatically"),
    LinkFileFormat.SHLINK: "Shlink (CSV, JSON)",
    LinkFileFormat.YOURLS: "YOURLS (CSV, SQL, JSON)",
    LinkFileFormat.KUTT: "Kutt (JSON)",
    LinkFileFormat.GOLINK: "golink (JSON)",
    LinkFileFormat.DUB: "Dub (CSV, JSON)",
    LinkFileFormat.BITLY: "Bitly (CSV, JSON)",
    LinkFileFormat.COLUMNS: lazy_gettext("Any table (CSV)"),
}
SYSTEM_LABELS: Final = {
    RemoteSystem.SHLINK: "Shlink",
    RemoteSystem.YOURLS: "YOURLS",
    RemoteSystem.KUTT: "Kutt",
}
FIELD_LABELS: Final = {
    "destination": lazy_gettext("Destination"),
    "code": lazy_gettext("Name or short URL"),
    "title": lazy_gettext("Title"),
    "notes": lazy_gettext("Notes"),
    "tags": lazy_gettext("Tags"),
    "created_at": lazy_gettext("Created"),
    "expires_at": lazy_gettext("Expires"),
}


@router.get("/app/links/imports")
async def link_imports_page(
    request: Request, actor: ReadCaller, rt: Rt, cursor: CursorParam = None
) -> Response:
    return await _render_page(request, actor, rt, cursor)


@router.post("/app/links/imports")
@large_body
async def upload_links(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    file: Annotated[UploadFile | None, File()] = None,
    kind: Annotated[str, Form(max_length=20)] = LinkFileFormat.AUTO,
    on_conflict: Annotated[str, Form(max_length=20)] = NameConflictPolicy.SKIP,
) -> Response:
    """Find out what an import would do. The page of the dry run offers to import."""
    form = await request.form()
    columns = {field: str(form.get(f"column_{field}") or "").strip()[:200] for field in FIELDS}
    sent: dict[str, Any] = {"kind": kind, "on_conflict": on_conflict, "columns": columns}
    if file is None or not file.filename:
        error = gettext("Choose a file.")
        return await _render_page(request, actor, rt, None, status=422, error=error, **sent)
    source = LinkFileFormat(kind) if kind in list(LinkFileFormat) else LinkFileFormat.AUTO
    mapping = {field: heading for field, heading in columns.items() if heading}
    try:
        rows = await read_link_upload(rt, actor.user.id, await file.read(), source, mapping)
        async with rt.db.write() as session:
            started = await start_link_import(
                *(session, rt, actor.user, rows, file.filename[:255]),
                conflict=_read_policy(on_conflict),
                dry_run=True,
            )
            path = f"{IMPORTS_PATH}/{started.id}"
    except (UnreadableFile, RateLimited) as exc:
        error = translate_error(exc)
        return await _render_page(request, actor, rt, None, status=422, error=error, **sent)
    return RedirectResponse(path, 303)


@router.post("/app/links/imports/remote")
async def fetch_links(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    system: Annotated[RemoteSystem, Form()],
    url: Annotated[str, Form(max_length=2_000)] = "",
    key: Annotated[str, Form(max_length=200)] = "",
    on_conflict: Annotated[str, Form(max_length=20)] = NameConflictPolicy.SKIP,
) -> Response:
    """Find out what an import from a running installation would do."""
    sent = {"system": system, "url": url, "on_conflict": on_conflict}
    if not (key.strip().isascii() and key.strip().isprintable() and key.strip()):
        error = gettext("Enter an API key.")
        return await _render_page(request, actor, rt, None, status=422, remote_error=error, **sent)
    try:
        remote = RemoteSource(system, check_source_url(url), key.strip())
    except InvalidSource as exc:
        error = translate_error(exc)
        return await _render_page(request, actor, rt, None, status=422, remote_error=error, **sent)
    try:
        async with rt.db.write() as session:
            started = await start_remote_import(
                *(session, rt, actor.user, remote),
                conflict=_read_policy(on_conflict),
                dry_run=True,
            )
            path = f"{IMPORTS_PATH}/{started.id}"
    except RemoteImportRunning as exc:
        error = translate_error(exc)
        return await _render_page(request, actor, rt, None, status=409, remote_error=error, **sent)
    return RedirectResponse(path, 303)


def _read_policy(text: str) -> NameConflictPolicy:
    known = text in list(NameConflictPolicy)
    return NameConflictPolicy(text) if known else NameConflictPolicy.SKIP


@router.get("/app/links/imports/{import_id}")
async def link_import_page(
    import_id: Id,
    request: Request,
    actor: ReadCaller,
    rt: Rt,
    cursor: CursorParam = None,
    outcome: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """Show what an import would do or did: progress, counts and the result of each row."""
    only = RowOutcome(outcome) if outcome in list(RowOutcome) else None
    async with rt.db.read() as session:
        shown = await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        page = await list_rows(session, CursorCodec(rt.secret), import_id, only, PAGE_SIZE, cursor)
    under_way = shown.status in ACTIVE_STATUSES
    response = render_response(
        request,
        actor,
        "links/import.html",
        page_title=shown.name or gettext("Untitled import"),
        import_run=shown,
        facts=LinkImportOut.from_import(shown),
        field_labels=FIELD_LABELS,
        source=SOURCE_LABELS.get(LinkFileFormat(shown.kind), "CSV / JSON"),
        under_way=under_way,
        rows=[_show_row(row) for row in page.items],
        outcome=only or "",
        address=lambda **changes: _build_url(shown, changes),
        next_url=(
            _build_url(shown, {"outcome": only, "cursor": page.next_cursor})
            if page.next_cursor
            else None
        ),
        first_url=_build_url(shown, {"outcome": only}) if cursor else None,
    )
    if "hx-request" in request.headers and not under_way:
        # It ended after the page was made: its actions are different now.
        response.headers["HX-Refresh"] = "true"
    return response


@router.post("/app/links/imports/{import_id}/run")
async def run_link_import(import_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Import the rows of a dry run."""
    response = RedirectResponse(f"{IMPORTS_PATH}/{import_id}", 303)
    try:
        async with rt.db.write() as session:
            tried = await get_own_import(session, actor.user.id, _SUBJECT, import_id)
            await run_tried_import(session, rt, tried)
    except Conflict as exc:
        flash.add(response, rt, translate_error(exc), kind="note")
    return response


@router.post("/app/links/imports/{import_id}/stop")
async def stop_link_import(import_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Stop an import; links that were imported stay."""
    async with rt.db.write() as session:
        running = await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        await stop_running_import(session, running, rt.clock.now())
    response = RedirectResponse(f"{IMPORTS_PATH}/{import_id}", 303)
    flash.add(response, rt, gettext("Import stopped. Upload the file again to resume."))
    return response


@router.post("/app/links/imports/{import_id}/rollback")
async def roll_back_link_import(import_id: Id, actor: WriteCaller, rt: Rt) -> Response:
    """Remove the links that were imported and are unchanged since."""
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
    following = urlencode({"cursor": page.next_cursor}) if page.next_cursor else None
    return render_response(
        request,
        actor,
        "links/imports.html",
        status=status,
        page_title=gettext("Moving in"),
        imports=page.items,
        sources=list(SOURCE_LABELS.items()),
        systems=list(SYSTEM_LABELS.items()),
        field_labels=FIELD_LABELS,
        max_bytes=rt.settings.max_body_bytes - FORM_OVERHEAD_BYTES,
        next_url=f"{IMPORTS_PATH}?{following}" if following else None,
        first_url=IMPORTS_PATH if cursor else None,
        **more,
    )


def _show_row(row: ImportRow) -> dict[str, Any]:
    names = ("place", "shown", "outcome", "why", "item_id")
    return {name: getattr(row, name) for name in names}


def _build_url(shown: ImportRun, changes: Mapping[str, str | None]) -> str:
    query = {name: value for name, value in changes.items() if value}
    path = f"{IMPORTS_PATH}/{shown.id}"
    return f"{path}?{urlencode(query)}" if query else path
