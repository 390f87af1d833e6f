"""Clients of lists: headers of browsers with a creator cookie, and helpers that create lists."""

import uuid
from typing import Any

from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.lists.draft_owners import CREATOR_COOKIE

ORIGIN = {"Origin": "http://go.test"}


def creator(token: str | None = None, *, proven: bool = True) -> dict[str, str]:
    """Return the headers of a browser with a creator cookie."""
    headers = {"Cookie": f"{CREATOR_COOKIE.base_name}={token or uuid.uuid4()}"}
    return headers | ORIGIN if proven else headers


async def new_list(
    client: AsyncClient, headers: dict[str, str], *urls: str, **given: Any
) -> dict[str, Any]:
    """Create a draft with these entries."""
    made = await client.post("/api/v1/lists", headers=headers, json=given or None)
    assert made.status_code == 201, made.text
    for url in urls:
        added = await client.post(
            f"/api/v1/lists/{made.json()['id']}/entries", headers=headers, json={"url": url}
        )
        assert added.status_code == 201, added.text
    return await read(client, headers, made.json()["id"])


async def read(client: AsyncClient, headers: dict[str, str], list_id: str) -> dict[str, Any]:
    response = await client.get(f"/api/v1/lists/{list_id}", headers=headers)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def published(
    client: AsyncClient, headers: dict[str, str], slug: str | None, *urls: str, **given: Any
) -> dict[str, Any]:
    draft = await new_list(
        client, headers, *(urls or ("https://example.com/a", "https://example.com/b")), **given
    )
    body = {"slug": slug} if slug else None
    response = await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=headers, json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def forget_parts(rt: Runtime) -> None:
    rt._singletons.clear()
