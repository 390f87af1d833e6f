"""Running installations of other systems as sources: their links, page by page over their APIs.

The server is foreign: the safe client fetches, and an extraction process parses. The page that
comes next is stored with the rows of the last one, so that a killed job fetches nothing twice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from sqlalchemy import select

from refract.core.db.session import WriteSession
from refract.core.errors import Conflict, Invalid
from refract.core.net import BadStatus, FetchError, PageFetcher
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl, parse_web_url
from refract.identity import audit
from refract.identity.models import User, UserRole
from refract.imports.models import ImportRow, ImportRun, ImportStatus, ImportSubject, RowOutcome
from refract.imports.payloads import enqueue_import
from refract.imports.service import add_stored_rows, create_import, lock_import, stop_import
from refract.imports.upload import ImportsBusy
from refract.jobs.errors import TryAgain
from refract.limits.errors import RateLimited
from refract.links.imports.formats import LinkFileFormat
from refract.links.imports.importer import NameConflictPolicy
from refract.links.imports.runs import charge_rows, read_link_upload
from refract.records.errors import UnreadableFile
from refract.records.stored_rows import StoredRow

MAX_PAGES: Final = 20_000
FETCH_SECONDS: Final = 20.0
"""For one page. Old installations are slow."""
_SEAL_PURPOSE: Final = "import-source"
_KEY_REFUSED: Final = (401, 403)
REFUSED_MESSAGE: Final = "The server doesn't accept the key."
_JSON_TYPES: Final = ("application/json", "text/json", "text/plain", "application/javascript")


class RemoteSystem(StrEnum):
    """Systems whose links are read from a running installation."""

    SHLINK = "shlink"
    KUTT = "kutt"
    YOURLS = "yourls"


class InvalidSource(Invalid):
    """This isn't the URL of an installation: {why}"""


class RemoteImportRunning(Conflict):
    """Another import of yours is still fetching links. Wait for it, or stop it."""


@dataclass(frozen=True, slots=True)
class RemoteApi:
    """How a page of links is requested: by its number from 0, its size and the key."""

    page_size: int
    path: Callable[[int, int, str], str]
    headers: Callable[[str], Mapping[str, str]]


_APIS: Final[Mapping[str, RemoteApi]] = {
    RemoteSystem.SHLINK: RemoteApi(
        500,
        lambda page, size, _key: (
            "/rest/v3/short-urls?"
            + urlencode({"page": page + 1, "itemsPerPage": size, "orderBy": "dateCreated-ASC"})
        ),
        lambda key: {"X-Api-Key": key},
    ),
    RemoteSystem.KUTT: RemoteApi(
        50,
        lambda page, size, _key: "/api/v2/links?" + urlencode({"limit": size, "skip": page * size}),
        lambda key: {"X-API-Key": key},
    ),
    RemoteSystem.YOURLS: RemoteApi(
        500,
        lambda page, size, key: (
            "/yourls-api.php?"
            + urlencode({"action": "stats", "filter": "last", "format": "json", "signature": key})
            + f"&limit={size}&start={page * size}"
        ),
        lambda _key: {},
    ),
}


def check_source_url(text: str) -> str:
    """Return the base URL of an installation without its last slash. Raises `InvalidSource`."""
    try:
        url = parse_web_url(text.strip())
    except BadUrl as exc:
        raise InvalidSource(why=str(exc)) from exc
    if url.query or url.fragment:
        raise InvalidSource(why="leave out what follows its path.")
    return url.href.rstrip("/")


@dataclass(frozen=True, slots=True)
class RemoteSource:
    """A running installation and a key to it."""

    system: RemoteSystem
    url: str
    key: str


async def start_remote_import(
    session: WriteSession,
    rt: Runtime,
    user: User,
    remote: RemoteSource,
    *,
    conflict: NameConflictPolicy,
    dry_run: bool,
) -> ImportRun:
    """Start an import from a running installation; a worker fetches its links.

    The key is sealed, and erased once the last page was fetched. One at a time for each person: a
    slow server keeps a worker busy. Raises `RemoteImportRunning`.
    """
    await _require_none_fetching(session, user)
    sealed = rt.secret.seal(_SEAL_PURPOSE, remote.key.encode())
    options = {
        "conflict": conflict.value,
        "keep_ids": user.role == UserRole.ADMIN,
        "source": {"url": remote.url, "key": sealed, "page": 0},
    }
    host = urlsplit(remote.url).netloc
    import_run = await create_import(
        session, rt, user.id, remote.system.value, host, ImportSubject.LINKS, options
    )
    import_run.dry_run = dry_run
    await enqueue_import(session, rt, import_run)
    await audit.record_event(session, rt, "links.import", actor=user, target=str(import_run.id))
    return import_run


async def fetch_next_page(rt: Runtime, import_id: int) -> bool:
    """Store the rows of the next page and commit; return whether there are more pages.

    Raises `TryAgain` if the server is away.
    """
    async with rt.db.read() as session:
        import_run = await session.get(ImportRun, import_id)
    source = _get_source(import_run)
    if import_run is None or source is None:
        return False
    try:
        rows = await _fetch_rows(rt, import_run.user_id, import_run.kind, source)
    except (FetchError, UnreadableFile) as exc:
        is_refusal = isinstance(exc, BadStatus) and exc.status in _KEY_REFUSED
        await _stop_unreadable(rt, import_id, REFUSED_MESSAGE if is_refusal else exc.message)
        return False
    async with rt.db.write() as session:
        locked = await lock_import(session, import_id)
        if locked is None or _get_source(locked) != source:
            return False  # stopped, or fetched by another worker
        try:
            await charge_rows(session, rt, await session.get_one(User, locked.user_id), len(rows))
        except RateLimited as exc:
            await _note_problem(session, locked, exc.message, rt)
            return False
        await add_stored_rows(session, locked, rows)
        api, page = _APIS[locked.kind], int(source["page"]) + 1
        is_last = len(rows) < api.page_size or page >= MAX_PAGES
        rest = {name: value for name, value in (locked.options or {}).items() if name != "source"}
        locked.options = rest if is_last else {**rest, "source": {**source, "page": page}}
        return not is_last


async def _require_none_fetching(session: WriteSession, user: User) -> None:
    # Locked, so that of two that are started at once the second sees the first.
    await session.execute(select(User.id).where(User.id == user.id).with_for_update())
    running = select(ImportRun).where(
        ImportRun.user_id == user.id,
        ImportRun.subject == ImportSubject.LINKS,
        ImportRun.status == ImportStatus.RUNNING,
    )
    if any(map(_get_source, await session.scalars(running))):
        raise RemoteImportRunning


def _get_source(import_run: ImportRun | None) -> Mapping[str, Any] | None:
    if import_run is None or import_run.status != ImportStatus.RUNNING:
        return None
    source: Mapping[str, Any] | None = (import_run.options or {}).get("source")
    return source


async def _fetch_rows(
    rt: Runtime, user_id: int, kind: str, source: Mapping[str, Any]
) -> Sequence[StoredRow]:
    api = _APIS[kind]
    key = rt.secret.unseal(_SEAL_PURPOSE, str(source["key"])).decode()
    url = source["url"] + api.path(int(source["page"]), api.page_size, key)
    try:
        page = await rt.singleton(build_source_fetcher).fetch(
            url, accept=_JSON_TYPES, budget=FETCH_SECONDS, credentials=api.headers(key)
        )
        if kind == RemoteSystem.YOURLS and _is_empty_yourls_page(page.body):
            return []
        return list((await read_link_upload(rt, user_id, page.body, LinkFileFormat(kind))).rows)
    except (FetchError, ImportsBusy) as exc:
        if isinstance(exc, ImportsBusy) or exc.is_transient:
            # Not the cause of the error: its URL may hold the key.
            raise TryAgain("SOURCE_AWAY", exc.message) from None
        raise


def _is_empty_yourls_page(body: bytes) -> bool:
    """Return whether YOURLS says that nothing is left: then it leaves out the field `links`."""
    return b'"stats"' in body and b'"links"' not in body


def build_source_fetcher(rt: Runtime) -> PageFetcher:
    return PageFetcher.from_settings(rt.settings)


async def _stop_unreadable(rt: Runtime, import_id: int, message: str) -> None:
    async with rt.db.write() as session:
        locked = await lock_import(session, import_id)
        if locked is not None and locked.status == ImportStatus.RUNNING:
            await _note_problem(session, locked, message, rt)


async def _note_problem(
    session: WriteSession, locked: ImportRun, message: str, rt: Runtime
) -> None:
    """Stop an import, with a row that says why."""
    await add_stored_rows(session, locked, [StoredRow("source", locked.name or "", message, None)])
    row = await session.get_one(ImportRow, (locked.id, locked.total))
    row.outcome = RowOutcome.REFUSED
    locked.refused += 1
    await stop_import(session, locked, rt.clock.now())
