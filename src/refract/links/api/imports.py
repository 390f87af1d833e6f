"""API to import links: upload, dry run, progress, report, roll-back."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Request

from refract.core.pagination import CursorCodec
from refract.core.schemas import Id, OutputSchema
from refract.identity.dependencies import ReadCaller, WriteCaller
from refract.imports.errors import ImportClosed, ImportNotFound
from refract.imports.models import ImportRow, ImportSubject, RowOutcome
from refract.imports.service import (
    get_own_import,
    list_own_imports,
    list_rows,
    start_rollback,
    stop_running_import,
)
from refract.imports.upload import ImportsBusy
from refract.limits.errors import RateLimited
from refract.links.imports.columns import parse_mapping
from refract.links.imports.formats import LinkFileFormat
from refract.links.imports.importer import NameConflictPolicy
from refract.links.imports.remote import (
    InvalidSource,
    RemoteImportRunning,
    RemoteSource,
    check_source_url,
    start_remote_import,
)
from refract.links.imports.runs import (
    ImportNotTried,
    read_link_upload,
    run_tried_import,
    start_link_import,
)
from refract.links.imports.schemas import LinkImportOut, LinkImportRow, RemoteImportCreate
from refract.records.errors import UnreadableFile
from refract.web.dependencies import DEFAULT_PAGE_SIZE, CursorParam, LimitParam, Rt, api_router
from refract.web.problems import problems
from refract.web.routing import large_body

router = api_router("/links/imports", "links")
_SUBJECT = ImportSubject.LINKS
_FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class LinkImportRows(OutputSchema):
    items: list[LinkImportRow]
    next_cursor: str | None


class LinkImportPage(OutputSchema):
    items: list[LinkImportOut]
    next_cursor: str | None


@router.post(
    "",
    status_code=202,
    responses=problems(UnreadableFile, ImportsBusy, RateLimited),
    openapi_extra=_FILE_BODY,
)
@large_body
async def import_links(
    request: Request,
    actor: WriteCaller,
    rt: Rt,
    kind: Annotated[
        LinkFileFormat, Query(description="System that wrote the file; `auto` detects it.")
    ] = LinkFileFormat.AUTO,
    name: Annotated[
        str | None,
        Query(max_length=255, description="Name of the import, such as the file's name."),
    ] = None,
    on_conflict: Annotated[
        NameConflictPolicy,
        Query(
            description=(
                "When a name already has another destination: `skip` the row, import it as `name-2`"
                " (`rename`), or refuse it (`fail`)."
            )
        ),
    ] = NameConflictPolicy.SKIP,
    column: Annotated[
        Sequence[str],
        Query(
            max_length=10,
            description=(
                "In a table of an unknown system, the heading that a field is read from, such as"
                " `destination=Long URL`. Fields are guessed otherwise: `destination`, `code`,"
                " `title`, `notes`, `tags`, `created_at`, `expires_at`."
            ),
        ),
    ] = (),
    dry_run: Annotated[
        bool,
        Query(
            description=(
                "Find out what would happen, and change nothing."
                " `POST /links/imports/{id}/run` imports the rows afterwards."
            )
        ),
    ] = False,
) -> LinkImportOut:
    """Import links: the body is the file.

    Rows become links in the background. Links that are here already are skipped.
    """
    mapping = parse_mapping(column)
    file = await read_link_upload(rt, actor.user.id, await request.body(), kind, mapping)
    async with rt.db.write() as session:
        started = await start_link_import(
            *(session, rt, actor.user, file, name), conflict=on_conflict, dry_run=dry_run
        )
        return LinkImportOut.from_import(started)


@router.post("/remote", status_code=202, responses=problems(InvalidSource, RemoteImportRunning))
async def import_remote_links(
    body: RemoteImportCreate, actor: WriteCaller, rt: Rt
) -> LinkImportOut:
    """Import the links of a running Shlink, Kutt or YOURLS.

    They are fetched page by page in the background.
    """
    remote = RemoteSource(body.system, check_source_url(body.url), body.key)
    async with rt.db.write() as session:
        started = await start_remote_import(
            *(session, rt, actor.user, remote),
            conflict=body.on_conflict,
            dry_run=body.dry_run,
        )
        return LinkImportOut.from_import(started)


@router.get("")
async def list_link_imports(
    actor: ReadCaller, rt: Rt, limit: LimitParam = DEFAULT_PAGE_SIZE, cursor: CursorParam = None
) -> LinkImportPage:
    """List your imports of links, newest first."""
    async with rt.db.read() as session:
        page = await list_own_imports(
            session, CursorCodec(rt.secret), actor.user.id, _SUBJECT, limit, cursor
        )
    return LinkImportPage(
        items=[LinkImportOut.from_import(import_run) for import_run in page.items],
        next_cursor=page.next_cursor,
    )


@router.get("/{import_id}", responses=problems(ImportNotFound))
async def read_link_import(import_id: Id, actor: ReadCaller, rt: Rt) -> LinkImportOut:
    """Read the progress of an import."""
    async with rt.db.read() as session:
        return LinkImportOut.from_import(
            await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        )


@router.get("/{import_id}/rows", responses=problems(ImportNotFound))
async def list_link_import_rows(
    import_id: Id,
    actor: ReadCaller,
    rt: Rt,
    limit: LimitParam = DEFAULT_PAGE_SIZE,
    cursor: CursorParam = None,
    outcome: Annotated[RowOutcome | None, Query(description="Only rows with this outcome.")] = None,
) -> LinkImportRows:
    """List the outcome of each row, in the order of the file."""
    async with rt.db.read() as session:
        await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        page = await list_rows(session, CursorCodec(rt.secret), import_id, outcome, limit, cursor)
    return LinkImportRows(
        items=[_build_row(row) for row in page.items], next_cursor=page.next_cursor
    )


@router.post(
    "/{import_id}/run", status_code=202, responses=problems(ImportNotFound, ImportNotTried)
)
async def run_link_import(import_id: Id, actor: WriteCaller, rt: Rt) -> LinkImportOut:
    """Import the rows of a dry run that is done."""
    async with rt.db.write() as session:
        tried = await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        return LinkImportOut.from_import(await run_tried_import(session, rt, tried))


@router.post("/{import_id}/stop", responses=problems(ImportNotFound))
async def stop_link_import(import_id: Id, actor: WriteCaller, rt: Rt) -> LinkImportOut:
    """Stop an import; imported links stay. Upload the file again to resume."""
    async with rt.db.write() as session:
        running = await get_own_import(session, actor.user.id, _SUBJECT, import_id)
        stopped = await stop_running_import(session, running, rt.clock.now())
        return LinkImportOut.from_import(stopped)


@router.post(
    "/{import_id}/rollback", status_code=202, responses=problems(ImportNotFound, ImportClosed)
)
async def roll_back_link_import(import_id: Id, actor: WriteCaller, rt: Rt) -> LinkImportOut:
    """Undo an import: remove its links, but not those that were changed since.

    A running import is stopped. The links that stay are its rows with the outcome `KEPT`.
    """
    async with rt.db.write() as session:
        return LinkImportOut.from_import(
            await start_rollback(session, rt, actor.user, _SUBJECT, import_id)
        )


def _build_row(row: ImportRow) -> LinkImportRow:
    return LinkImportRow(
        number=row.number,
        place=row.place,
        shown=row.shown,
        outcome=RowOutcome(row.outcome),
        why=row.why,
        link_id=row.item_id,
    )
