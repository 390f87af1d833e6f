"""An installation on which every operation is provoked, and the codes that each sends."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any

from httpx import ASGITransport, AsyncClient, Request, Response

from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.core.settings.model import Settings
from refract.identity import keys
from refract.identity.models import Scope, User
from refract.web.problems import MEDIA_TYPE
from tests import make
from tests.access.identities import ISSUERS, World, populate
from tests.access.matrix import ROWS, Row
from tests.access.objects import kind_of, parameters_of, real_path
from tests.client import by_key
from tests.conftest import START, make_settings
from tests.documented import DocumentedErrors, documented_errors

Headers = dict[str, str]
OPERATION_ROWS = {re.sub(r":\w+}", "}", route): row for route, row in ROWS.items()}
"""The rows by the paths of the OpenAPI document, which has no converters such as `{name:path}`."""
PEER = "198.51.100.7"
"""Address of the requests: network limits don't apply to this machine itself."""


@dataclass
class Site:
    """An application with sample data. Variants have other settings on the same database."""

    rt: Runtime
    app: WebNode
    world: World
    given: dict[str, Any]
    """The settings, as they were given."""
    keys: dict[str, Headers]
    exhausted_key: int
    """The id of the key "exhausted"."""
    variants: dict[str, "Site"] = field(default_factory=dict)

    @property
    def errors(self) -> DocumentedErrors:
        return documented_errors(self.app)

    def with_settings(self, **changes: Any) -> "Site":
        """Return the same site under other settings."""
        name = repr(sorted(changes.items()))
        if name not in self.variants:
            rt = Runtime(
                settings=make_settings(**self.given | changes),
                db=self.rt.db,
                clock=self.rt.clock,
                ids=self.rt.ids,
                secret=self.rt.secret,
            )
            self.variants[name] = Site(
                rt, WebNode(rt), self.world, self.given, self.keys, self.exhausted_key
            )
        return self.variants[name]

    async def send(self, request: Request, peer: str = PEER) -> Response:
        async with AsyncClient(transport=ASGITransport(self.app, client=(peer, 4711))) as client:
            response = await client.send(request)
            await response.aread()
            return response

    async def close(self) -> None:
        for site in (*self.variants.values(), self):
            if site.app.engine is not None:
                site.app.engine.spool.close()
            await site.rt.close()


@asynccontextmanager
async def open_site(folder: Path, database_url: str, **given: Any) -> AsyncIterator[Site]:
    """Serve in this process, without background work."""
    given |= {
        "data_dir": folder,
        "database_url": database_url,
        "issuers": ISSUERS,
        "signin_links": "on",
    }
    async with open_runtime(make_settings(**given)) as rt:
        app, world = WebNode(rt), await populate(rt)
        site = Site(rt, app, world, given, *await _keys(rt, world))
        try:
            yield site
        finally:
            await site.close()


@asynccontextmanager
async def open_runtime(settings: Settings) -> AsyncIterator[Runtime]:
    settings.data_dir.mkdir(mode=0o700, exist_ok=True)
    clock, db = ManualClock(START), Database(settings)
    yield Runtime(
        settings=settings,
        db=db,
        clock=clock,
        ids=SnowflakeGenerator(1, clock, wait=clock.advance),
        secret=Secret(b"s" * 40),
    )
    await db.close()


async def _keys(rt: Runtime, world: World) -> tuple[dict[str, Headers], int]:
    """Return the keys of all callers, and the id of the key to be exhausted."""
    async with rt.db.write() as session:
        long_ago = rt.clock.now() - timedelta(days=1)
        _, expired = await keys.create_key(
            session, rt, world.owner, "expired", list(Scope)[:1], expires_at=long_ago
        )
        used, exhausted = await keys.create_key(
            session, rt, world.owner, "exhausted", list(Scope)[:1]
        )
        found = {
            "owner": by_key(await make.key(session, rt, world.owner, *make.OWN)),
            "admin": by_key(await make.key(session, rt, world.admin, *make.ALL)),
            "expired": by_key(expired),
            "exhausted": by_key(exhausted),
        }
        for scope in Scope:
            others = [other for other in Scope if other is not scope]
            found[f"without {scope}"] = by_key(await make.key(session, rt, world.admin, *others))
    return found, used.id


class Asking:
    """The requests to an operation, and the codes that it sent."""

    def __init__(self, site: Site, operation: str) -> None:
        self.site = site
        self.operation = operation
        self.method, self.path = operation.split(" ")
        self.row: Row = OPERATION_ROWS[operation]
        self.sent: dict[str, int] = {}
        document = site.app.api.openapi()["paths"][self.path][self.method.lower()]
        self.parameters = {one["name"] for one in document.get("parameters", ())}
        ways = [way for way in document.get("security", ()) if way]
        self.scope: str | None = next(
            (scope for way in ways for scopes in way.values() for scope in scopes), None
        )

    @property
    def rt(self) -> Runtime:
        return self.site.rt

    @property
    def world(self) -> World:
        return self.site.world

    @property
    def caller(self) -> User:
        """Whoever may do this."""
        return self.world.admin if self.scope == Scope.ADMIN else self.world.owner

    @property
    def headers(self) -> Headers:
        return self.site.keys["admin" if self.scope == Scope.ADMIN else "owner"]

    async def target(self, **chosen: str) -> str:
        """Return the path with parameters filled in: the owner's objects unless chosen."""
        await real_path(self.world, self.path)
        values = self.world.made | chosen
        path = self.path
        for parameter in parameters_of(self.path):
            path = path.replace("{" + parameter + "}", values[parameter])
        return path

    def absent(self, parameter: str) -> str:
        return kind_of(self.path, parameter).absent

    async def ask(self, path: str | None = None, **given: Any) -> Response:
        """Send the valid request, changed by the arguments."""
        return await self.send(await self.request(path, **given), given.get("site"))

    async def request(
        self,
        path: str | None = None,
        *,
        headers: Headers | None = None,
        more: Headers | None = None,
        query: dict[str, str] | None = None,
        site: Site | None = None,  # noqa: ARG002 - for `ask`
        **body: Any,
    ) -> Request:
        """Build the valid request, changed by the arguments. `headers` set the caller."""
        body = body or ({"json": self.row.body} if self.row.body is not None else {})
        return Request(
            self.method,
            self.rt.settings.public_url + (path or await self.target()),
            headers=(self.headers if headers is None else headers) | (more or {}),
            params=(self.row.query or {}) | (query or {}),
            **body,
        )

    async def send(self, request: Request, site: Site | None = None, peer: str = PEER) -> Response:
        response = await (site or self.site).send(request, peer)
        if response.headers.get("content-type", "").startswith(MEDIA_TYPE):
            self.sent[response.json()["code"]] = response.status_code
        return response


def unique(prefix: str = "name") -> str:
    return f"{prefix}-{token_hex(6)}"


@contextmanager
def many(entered: Iterator[Any]) -> Iterator[None]:
    """Enter every context manager of an iterator; leave them all at the end."""
    with ExitStack() as stack:
        for one in entered:
            stack.enter_context(one)
        yield
