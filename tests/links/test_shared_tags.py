"""Shared tags over HTTP: with signs, unused, merged and deleted by administrators."""

from typing import Any

from httpx import AsyncClient

from tests.people import Headers


async def _tag(client: AsyncClient, headers: Headers, name: str) -> dict[str, Any]:
    response = await client.post(
        "/api/v1/tags", headers=headers, json={"name": name, "scope": "shared"}
    )
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def _link(client: AsyncClient, headers: Headers, *tags: str) -> dict[str, Any]:
    response = await client.post(
        "/api/v1/links",
        headers=headers,
        json={"destination": "https://example.com/x", "tags": list(tags)},
    )
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def _names(client: AsyncClient, headers: Headers) -> list[str]:
    found = (await client.get("/api/v1/tags?scope=shared", headers=headers)).json()["items"]
    return [tag["name"] for tag in found]


async def test_a_shared_tag_is_called_c_plus_plus(client: AsyncClient, as_ada: Headers) -> None:
    link = await _link(client, as_ada, "C++", "C#", ".NET", "R&D")
    assert sorted(link["tags"]) == [".NET", "C#", "C++", "R&D"]

    found = await client.get("/api/v1/links", headers=as_ada, params={"tag": ["C++", "c#"]})

    assert [item["id"] for item in found.json()["items"]] == [link["id"]]
    none = await client.get("/api/v1/links", headers=as_ada, params={"tag": ["C++", "C"]})
    assert none.json()["items"] == []


async def test_an_unused_shared_tag_is_listed_for_administrators(
    client: AsyncClient, as_root: Headers, as_ada: Headers
) -> None:
    await _tag(client, as_root, "Unused")

    assert await _names(client, as_root) == ["Unused"]
    assert await _names(client, as_ada) == []


async def test_shared_tags_are_merged_and_their_names_go_along(
    client: AsyncClient, as_root: Headers, as_ada: Headers
) -> None:
    both, one = await _link(client, as_ada, "K8s", "Kubernetes"), await _link(client, as_ada, "k8s")
    tags = {
        tag["name"]: tag["id"]
        for tag in (await client.get("/api/v1/tags?scope=shared", headers=as_ada)).json()["items"]
    }
    merge = {"target": tags["Kubernetes"], "sources": [tags["K8s"]]}

    refused = await client.post("/api/v1/tags/merge", headers=as_ada, json=merge)
    merged = await client.post("/api/v1/tags/merge", headers=as_root, json=merge)

    assert refused.status_code == 403
    assert (merged.json()["name"], merged.json()["usage_count"]) == ("Kubernetes", 2)
    for link in (both, one):
        seen = (await client.get(f"/api/v1/links/{link['id']}", headers=as_ada)).json()
        assert seen["tags"] == ["Kubernetes"]
    again = await _link(client, as_ada, "K8S")
    assert again["tags"] == ["Kubernetes"]
    found = await client.get("/api/v1/links?tag=k8s", headers=as_ada)
    assert len(found.json()["items"]) == 3


async def test_a_shared_tag_is_deleted_and_revived_by_its_name(
    client: AsyncClient, as_root: Headers, as_ada: Headers
) -> None:
    link = await _link(client, as_ada, "Old", "Kept")
    number = next(
        tag["id"]
        for tag in (await client.get("/api/v1/tags?scope=shared", headers=as_ada)).json()["items"]
        if tag["name"] == "Old"
    )

    assert (await client.delete(f"/api/v1/tags/{number}", headers=as_ada)).status_code == 403
    assert (await client.delete(f"/api/v1/tags/{number}", headers=as_root)).status_code == 204

    seen = (await client.get(f"/api/v1/links/{link['id']}", headers=as_ada)).json()
    assert seen["tags"] == ["Kept"]
    assert await _names(client, as_ada) == ["Kept"]
    assert (await client.delete(f"/api/v1/tags/{number}", headers=as_root)).status_code == 404
    await _link(client, as_ada, "old")
    assert sorted(await _names(client, as_ada)) == ["Kept", "Old"]
