"""Bringing bookmarks along and taking the library away, in the browser."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import File, Form, Query, Request, UploadFile
from starlette.responses import RedirectResponse, Response

from refract.core.errors import Conflict
from refract.core.page import Cursors
from refract.core.runtime import Runtime
from refract.core.schema import Id
from refract.identity.actors import Reader, Writer
from refract.identity.rendering import respond
from refract.identity.visitors import Actor
from refract.library import queries
from refract.library.import_models import Import, ImportStatus, RowOutcome
from refract.library.importing import Kind
from refract.library.importing.bring import stop
from refract.library.importing.files import begin_file, my_import, my_imports, rows_of, take_back, try_file
from refract.library.importing.reading import read_file
from refract.records.errors import UnreadableFile
from refract.web import flash
from refract.web.routes import large_body
from refract.web.toolkit import Cursor, Rt, page_router

router = page_router()
HERE = "/app/library/imports"
PER_PAGE = 50
TOLD = 50
"""Rows of a trial that a page shows, of those that would not come."""
ROUND_A_FILE = 8 * 1024
"""Bytes of a form beside the file in it, at most."""
UNDER_WAY = (ImportStatus.RUNNING, ImportStatus.ROLLING_BACK)


@router.get("/app/library/imports")
async def imports_page(request: Request, actor: Reader, rt: Rt, cursor: Cursor = None) -> Response:
    return await _page(request, actor, rt, cursor)


@router.post("/app/library/imports")
@large_body
async def import_bookmarks(
    request: Request,
    actor: Writer,
    rt: Rt,
    file: Annotated[UploadFile | None, File()] = None,
    kind: Annotated[str, Form(max_length=20)] = Kind.AUTO,
    try_out: Annotated[str, Form(max_length=5)] = "",
) -> Response:
    """Begin an import, or only say what would become of the file."""
    if file is None or not file.filename:
        return await _page(request, actor, rt, None, status=422, error="Choose a file first.")
    name = file.filename[:255]
    try:
        wanted = Kind(kind) if kind in list(Kind) else Kind.AUTO
        content = await read_file(rt, actor.user.id, await file.read(), wanted, trial=bool(try_out))
    except UnreadableFile as refused:
        return await _page(request, actor, rt, None, status=422, error=refused.message, kind=kind)
    if try_out:
        async with rt.db.read() as session:
            trial = await try_file(session, actor.user.id, content, rt.clock.now(), left_out=True)
        return await _page(request, actor, rt, None, kind=kind, trial=trial, trial_name=name, trial_rows=trial.rows[:TOLD])
    async with rt.db.write() as session:
        number = (await begin_file(session, rt, actor.user, content, name)).id
    return RedirectResponse(f"{HERE}/{number}", 303)


@router.get("/app/library/imports/{import_id}")
async def import_page(
    import_id: Id,
    request: Request,
    actor: Reader,
    rt: Rt,
    cursor: Cursor = None,
    outcome: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """How far an import is, and what became of each row."""
    only = RowOutcome(outcome) if outcome in list(RowOutcome) else None
    async with rt.db.read() as session:
        one = await my_import(session, actor.user.id, import_id)
        page = await rows_of(session, Cursors(rt.secret), import_id, only, PER_PAGE, cursor)
        waiting = await queries.count_pending(session, actor.user.id)
    response = respond(
        request,
        actor,
        "library/import.html",
        page_title=one.name or "An import",
        one=one,
        under_way=one.status in UNDER_WAY,
        done=one.created + one.existing + one.refused,
        rows=page.items,
        outcome=only or "",
        review_waiting=waiting,
        address=lambda **changes: _address(one, changes),
        next_url=_address(one, {"outcome": only, "cursor": page.next_cursor}) if page.next_cursor else None,
        first_url=_address(one, {"outcome": only}) if cursor else None,
    )
    if "hx-request" in request.headers and one.status not in UNDER_WAY:
        response.headers["HX-Refresh"] = "true"  # it has ended since the page was made: what can be done with it is something else now
    return response


@router.post("/app/library/imports/{import_id}/stop")
async def stop_this_import(import_id: Id, actor: Writer, rt: Rt) -> Response:
    """Go no further; what is done stays."""
    async with rt.db.write() as session:
        await stop(session, await my_import(session, actor.user.id, import_id), rt.clock.now())
    response = RedirectResponse(f"{HERE}/{import_id}", 303)
    flash.say(response, rt, "Stopped. Bring the file again to go on.")
    return response


@router.post("/app/library/imports/{import_id}/rollback")
async def roll_this_back(import_id: Id, actor: Writer, rt: Rt) -> Response:
    """Remove everything that the import brought."""
    response = RedirectResponse(f"{HERE}/{import_id}", 303)
    try:
        async with rt.db.write() as session:
            await take_back(session, rt, actor.user, import_id)
    except Conflict as refused:
        flash.say(response, rt, refused.message, kind="note")
    return response


async def _page(request: Request, actor: Actor, rt: Runtime, cursor: str | None, *, status: int = 200, **more: Any) -> Response:
    async with rt.db.read() as session:
        page = await my_imports(session, Cursors(rt.secret), actor.user.id, PER_PAGE, cursor)
        waiting = await queries.count_pending(session, actor.user.id)
    return respond(
        request,
        actor,
        "library/imports.html",
        status=status,
        page_title="Import and export",
        imports=page.items,
        most=rt.settings.max_body_bytes - ROUND_A_FILE,
        review_waiting=waiting,
        next_url=f"{HERE}?{urlencode({'cursor': page.next_cursor})}" if page.next_cursor else None,
        first_url=HERE if cursor else None,
        **more,
    )


def _address(one: Import, changes: dict[str, str | None]) -> str:
    query = {name: value for name, value in changes.items() if value}
    return f"{HERE}/{one.id}?{urlencode(query)}" if query else f"{HERE}/{one.id}"
