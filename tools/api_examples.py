"""Examples of the API documentation, recorded from a run of the whole program on SQLite.

`make docs` writes them to `src/refract/web/api_examples.json`, and a test compares them with a new
run. An operation that the story below does not use gets an example made from its schema.
"""

import asyncio
import json
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from httpx import ASGITransport, AsyncClient, Response

from refract import migrations
from refract.app import WebNode
from refract.core.clock import ManualClock
from refract.core.db.session import Database
from refract.core.ids import SnowflakeGenerator
from refract.core.runtime import Runtime
from refract.core.secrets import Secret
from refract.core.settings.model import Settings
from refract.identity import keys
from refract.identity.models import Scope
from refract.identity.schemas import KeyCreate
from refract.identity.users import ensure_owner
from refract.web.schema_examples import EXAMPLES_FILE

BASE_URL = "https://go.example.com"
START = datetime(2026, 6, 1, 9, 30, tzinfo=UTC)
SECRET_KEY = "refract_4fJq0v8mYb2cXh7ZtRkPqLwNs3dGe6Ua"  # noqa: S105 - shown instead of a real one
RANDOM_FIELDS = {
    "key": SECRET_KEY,
    "prefix": SECRET_KEY[:16],
    "key_prefix": SECRET_KEY[:16],
    "request_id": "9f2c61d07be84a35",
}
"""What is random in responses, and what is shown instead: each run writes the same examples."""
Examples = dict[str, dict[str, Any]]


class ExampleRecorder:
    """A client of the API that keeps the first successful call of each operation."""

    def __init__(self, app: WebNode, client: AsyncClient) -> None:
        self._client = client
        self._patterns = [
            (method.upper(), re.compile(re.sub(r"{\w+}", "[^/]+", path)), operation["operationId"])
            for path, methods in sorted(app.api.openapi()["paths"].items(), key=_count_parameters)
            for method, operation in methods.items()
        ]
        self.examples: Examples = {}

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Call an operation, keep the call as an example, and return the response."""
        path = f"/api/v1{path}"
        if body is not None:
            more["json"] = body
        response = await self._client.request(method, path, **more)
        if response.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {response.text}")
        self._keep(method, path, body, response)
        return response.json() if response.content else None

    def _keep(self, method: str, path: str, body: Any, response: Response) -> None:
        bare = path.partition("?")[0]
        name = next(
            name for verb, way, name in self._patterns if verb == method and way.fullmatch(bare)
        )
        answer = response.json(object_hook=_replace_random) if response.content else None
        example = {"path": path, "request": body, "response": answer}
        self.examples.setdefault(name, example | {"status": response.status_code})


def _replace_random(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a response with the same text in each run instead of random ones."""
    shown = {name: RANDOM_FIELDS[name] for name in RANDOM_FIELDS.keys() & answer.keys()}
    return answer | {name: text for name, text in shown.items() if answer[name] is not None}


def _count_parameters(entry: tuple[str, Any]) -> int:
    """Sort literal paths before those with parameters."""
    return entry[0].count("{")


async def tell_links(api: ExampleRecorder) -> None:
    destination = "https://wiki.example.com/product/roadmap"
    body = {"destination": destination, "names": ["roadmap"], "title": "Roadmap", "tags": ["Plans"]}
    link = (await api.call("POST", "/links", body))["id"]
    await api.call("GET", f"/links/{link}")
    await api.call("GET", "/links?tag=plans&limit=20")
    await api.call("PATCH", f"/links/{link}", {"title": "Roadmap 2026", "redirect_status": 307})
    await api.call("POST", f"/links/{link}/names", {"name": "plans"})
    await api.call("DELETE", f"/links/{link}/names/plans")
    await api.call("POST", f"/links/{link}/renew", {"expires_at": "2026-12-31T23:00:00Z"})
    await api.call("POST", f"/links/{link}/disable")
    await api.call("POST", f"/links/{link}/enable")
    await api.call("GET", f"/links/{link}/owners")
    await api.call("GET", f"/links/{link}/history")
    await api.call("POST", f"/links/{link}/history/1/revert")
    await api.call("GET", f"/links/{link}/shares")
    await api.call("GET", f"/links/{link}/invitations")
    await api.call("GET", "/me/invitations")
    rows = [
        {"destination": "https://example.com/handbook", "names": ["handbook"]},
        {"destination": "https://example.com/incidents", "names": ["roadmap"]},
    ]
    await api.call("POST", "/links/bulk", {"links": rows})
    await api.call("GET", "/names/launch")
    await api.call("POST", "/resolve", {"path": "/roadmap"})
    await api.call("GET", f"/links/{link}/stats?from=2026-05-01&to=2026-06-01")
    await api.call("GET", f"/links/{link}/stats/countries")
    await api.call("GET", "/stats")
    await api.call("GET", "/stats/referrers")
    await api.call("DELETE", f"/links/{link}")
    await api.call("POST", f"/links/{link}/undo")


async def tell_lists(api: ExampleRecorder) -> None:
    made = await api.call("POST", "/lists", {"title": "Reading for new people"})
    path = f"/lists/{made['id']}"
    urls = ["https://www.rfc-editor.org/rfc/rfc3986", "https://example.com/handbook"]
    for url in urls:
        await api.call("POST", f"{path}/entries", {"url": url})
    entries = [entry["id"] for entry in (await api.call("GET", path))["entries"]]
    await api.call("PATCH", f"{path}/entries/{entries[0]}", {"title": "URI: Generic Syntax"})
    await api.call("PUT", f"{path}/order", {"entry_ids": entries[::-1]})
    await api.call("PATCH", path, {"description": "Start here.", "palette": "cobalt"})
    await api.call("DELETE", f"{path}/entries/{entries[1]}")
    await api.call("POST", f"{path}/entries/{entries[1]}/restore")
    await api.call("POST", f"{path}/publish", {"slug": "reading"})
    await api.call("GET", "/lists")
    await api.call("GET", "/public/lists/reading")
    await api.call("GET", f"{path}/actions")


async def tell_library(api: ExampleRecorder) -> None:
    text = "The outbox pattern: write the message in the same transaction as the change."
    item = await api.call("POST", "/items", {"text": text})
    path = f"/items/{item['id']}"
    await api.call("GET", path)
    await api.call("PATCH", path, {"title": "The outbox pattern"})
    await api.call("GET", "/items/pending")
    await api.call("POST", f"{path}/confirm", {"new_tags": ["databases"]})
    await api.call("GET", "/library?q=outbox")
    await api.call("GET", "/library/filters")
    await api.call("GET", f"{path}/similar")
    await api.call("POST", f"{path}/discard")
    await api.call("POST", f"{path}/undo")
    await api.call("POST", "/items/bulk", {"texts": ["Typography in one line"]})
    await api.call("GET", "/tags")
    tag = await api.call("POST", "/tags", {"name": "Storage", "color": "#3355AA"})
    await api.call("PATCH", f"/tags/{tag['id']}", {"name": "storage engines"})
    rules = {"items": [{"pattern": "github.com", "tags": ["code"]}]}
    await api.call("PUT", "/me/tag-rules", rules)
    await api.call("GET", "/me/tag-rules")
    await api.call("GET", "/search?q=roadmap")


async def tell_account(api: ExampleRecorder) -> None:
    await api.call("PATCH", "/me", {"nickname": "Ada", "bio": "Links and lists."})
    await api.call("GET", "/me")
    await api.call("GET", "/me/quota")
    key = await api.call("POST", "/keys", {"name": "Blog automation", "scopes": ["read", "write"]})
    await api.call("GET", "/keys")
    await api.call("DELETE", f"/keys/{key['id']}")
    await api.call("GET", "/admin/users")
    await api.call("POST", "/admin/blocked-domains", {"domain": "phishing.example"})
    await api.call("GET", "/admin/blocked-domains")
    await api.call("POST", "/domains", {"host": "sho.rt", "title": "Spring campaign"})
    await api.call("GET", "/domains")
    await api.call("GET", "/domains/sho.rt")
    await api.call("PATCH", "/domains/sho.rt", {"root_destination": "https://www.example.com/"})
    await api.call("GET", "/admin/jobs")
    await api.call("GET", "/admin/audit?limit=2")


async def record_examples(folder: Path) -> Examples:
    """Run the story on a new installation and return one example per operation."""
    settings, clock = Settings(data_dir=folder, base_url=BASE_URL), ManualClock(START)
    db = Database(settings)
    ids = SnowflakeGenerator(1, clock, wait=clock.advance)
    rt = Runtime(settings=settings, db=db, clock=clock, ids=ids, secret=Secret(b"e" * 40))
    try:
        await migrations.upgrade(db)
        async with db.write() as session:
            owner, _ = await ensure_owner(session, rt)
            new = KeyCreate(name="Examples", scopes=list(Scope))
            _, clear = await keys.create_audited_key(session, rt, owner, new, detail="")
        app = WebNode(rt)
        headers = {"X-API-Key": clear}
        transport = ASGITransport(app)
        async with AsyncClient(transport=transport, base_url=BASE_URL, headers=headers) as client:
            api = ExampleRecorder(app, client)
            for tell in (tell_links, tell_lists, tell_library, tell_account):
                await tell(api)
        if app.engine is not None:
            app.engine.spool.close()
        return api.examples
    finally:
        await rt.close()
        await db.close()


def main() -> None:
    """Write the examples."""
    with tempfile.TemporaryDirectory() as folder:
        examples = asyncio.run(record_examples(Path(folder)))
    text = json.dumps(dict(sorted(examples.items())), indent=1, ensure_ascii=False)
    EXAMPLES_FILE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
