"""Karakeep's REST API by its official SDK."""

from typing import Any

import httpx
import pytest

from refract.compat.karakeep.search import ALL_TYPES, parse_karakeep_search
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.models import ItemType
from refract.library.queries.numbered import PageMark, PageTag, PageTerms, PageWord
from tests.client import on_sqlite
from tests.compat.conftest import run_client


async def test_the_official_sdk(rt: Runtime, ada: User, address: str, key: str) -> None:
    steps = await run_client("karakeep.mjs", address, key)
    assert not [name for name, got in steps.items() if "failed" in got]
    statuses = {name: got["status"] for name, got in steps.items()}
    refused = {
        "again": 200, "asset": 403, "bad": 400, "badCursor": 400, "author": 400, "delete": 204,
        "deleted": 404, "deleteTag": 204, "deletedTag": 404, "createList": 403, "inList": 404,
        "backups": 404, "feeds": 404, "absent": 404, "badKey": 401,
    }  # fmt: skip
    created = dict.fromkeys(("create", "text", "bare", "createTag"), 201)
    assert statuses == dict.fromkeys(steps, 200) | created | refused
    data = {name: got.get("data") for name, got in steps.items()}

    assert data["user"]["id"] == str(ada.id)
    _check_bookmarks(data)
    _check_pages(data)
    _check_tags(data)
    _check_totals(data)
    errors = {name: got["error"] for name, got in steps.items() if got.get("error")}
    assert errors["bad"] == {"code": "BAD_REQUEST", "message": "url: Enter a valid URL."}
    assert errors["absent"] == {"code": "NOT_FOUND", "message": "Bookmark not found."}
    assert errors["createList"]["code"] == "FORBIDDEN"
    assert errors["badKey"] == "Unauthorized"


def _check_bookmarks(data: dict[str, Any]) -> None:
    made = data["create"]
    assert made["createdAt"] == "2020-01-02T03:04:05.678Z"
    assert (made["title"], made["note"], made["summary"]) == ("A title", "Mine", None)
    assert (made["favourited"], made["archived"], made["alreadyExists"]) == (True, False, False)
    assert (made["content"]["type"], made["content"]["url"]) == ("link", "https://example.com/a")
    assert (data["again"]["id"], data["again"]["alreadyExists"]) == (made["id"], True)
    assert data["text"]["content"]["text"] == "A thought\nof two lines"
    assert data["bare"]["taggingStatus"] == "pending"
    assert data["get"] == {name: made[name] for name in made if name != "alreadyExists"}
    assert (data["update"]["title"], data["update"]["summary"]) == ("Another", "In short")
    assert (data["update"]["archived"], data["update"]["favourited"]) == (True, False)
    assert (data["cleared"]["title"], data["cleared"]["summary"]) == (None, "In short")
    assert data["check"] == {"bookmarkId": made["id"]}
    assert data["unknown"] == {"bookmarkId": None}


def _check_pages(data: dict[str, Any]) -> None:
    ids = [data[name]["id"] for name in ("bare", "text", "create")]  # the newest first
    assert [found["id"] for found in data["first"]["bookmarks"]] == ids[:2]
    assert [found["id"] for found in data["second"]["bookmarks"]] == ids[2:]
    assert data["second"]["nextCursor"] is None
    for name in ("oldest", "favourites", "archived", "search", "tagged", "tagBookmarks"):
        assert [found["id"] for found in data[name]["bookmarks"]] == ids[2:], name
    assert data["missed"]["bookmarks"] == []


def _check_tags(data: dict[str, Any]) -> None:
    one, two = data["attach"]["attached"]
    assert data["detach"] == {"detached": [one]}
    assert data["getTag"] == {
        "id": two, "name": "two", "numBookmarks": 1, "numBookmarksByAttachedType": {"human": 1},
    }  # fmt: skip
    assert [tag["name"] for tag in data["tags"]["tags"]] == ["one", "three", "two"]
    assert [tag["name"] for tag in data["tagPage"]["tags"]] == ["one", "three"]
    assert data["tagPage"]["nextCursor"]
    assert [tag["name"] for tag in data["tagsByUse"]["tags"]] == ["two"]
    assert data["rename"]["name"] == "Third"


def _check_totals(data: dict[str, Any]) -> None:
    for name in ("lists", "bookmarkLists"):
        assert data[name] == {"lists": []}
    assert data["highlights"] == {"highlights": [], "nextCursor": None}
    assert data["bookmarkHighlights"] == {"highlights": []}
    stats = data["stats"]
    assert (stats["numBookmarks"], stats["numArchived"], stats["numTags"]) == (3, 1, 2)
    assert stats["bookmarksByType"] == {"link": 2, "text": 1, "asset": 0}
    assert stats["topDomains"] == [{"domain": "example.com", "count": 2}]
    assert stats["bookmarkingActivity"]["thisYear"] == 2
    assert stats["tagUsage"] == [{"name": "two", "count": 1}]


@on_sqlite
async def test_cursors_belong_to_their_caller(
    http: httpx.AsyncClient, key: str, other_key: str
) -> None:
    async def get(path: str, credential: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {credential}"}
        return await http.get(f"/karakeep/api/v1{path}", headers=headers)

    for path in "ab":
        body = {"type": "link", "url": f"https://example.com/{path}", "title": "T"}
        headers = {"Authorization": f"Bearer {key}"}
        await http.post("/karakeep/api/v1/bookmarks", json=body, headers=headers)
    cursor = (await get("/bookmarks?limit=1", key)).json()["nextCursor"]

    assert (await get(f"/bookmarks?limit=1&cursor={cursor}", key)).status_code == 200
    stolen = await get(f"/bookmarks?limit=1&cursor={cursor}", other_key)
    other_search = await get(f"/bookmarks?limit=1&archived=true&cursor={cursor}", key)
    assert (stolen.status_code, other_search.status_code) == (400, 400)


@on_sqlite
async def test_what_is_foreign_does_not_exist(
    http: httpx.AsyncClient, key: str, other_key: str
) -> None:
    mine, theirs = ({"Authorization": f"Bearer {text}"} for text in (key, other_key))
    root = "/karakeep/api/v1"
    made = await http.post(
        f"{root}/bookmarks",
        json={"type": "link", "url": "https://example.com/", "title": "T"},
        headers=theirs,
    )
    tag = await http.post(f"{root}/tags", json={"name": "secret"}, headers=theirs)
    bookmark, tag_id = made.json()["id"], tag.json()["id"]
    own = await http.post(f"{root}/bookmarks", json={"type": "text", "text": "Mine"}, headers=mine)
    calls = [
        ("GET", f"/bookmarks/{bookmark}", None),
        ("PATCH", f"/bookmarks/{bookmark}", {"title": "x"}),
        ("DELETE", f"/bookmarks/{bookmark}", None),
        ("POST", f"/bookmarks/{bookmark}/tags", {"tags": [{"tagName": "x"}]}),
        ("DELETE", f"/bookmarks/{bookmark}/tags", {"tags": [{"tagName": "secret"}]}),
        ("GET", f"/bookmarks/{bookmark}/lists", None),
        ("GET", f"/bookmarks/{bookmark}/highlights", None),
        ("GET", f"/tags/{tag_id}", None),
        ("GET", f"/tags/{tag_id}/bookmarks", None),
        ("PATCH", f"/tags/{tag_id}", {"name": "x"}),
        ("DELETE", f"/tags/{tag_id}", None),
    ]
    for method, path, body in calls:
        refused = await http.request(method, root + path, json=body, headers=mine)
        assert refused.status_code == 404, (method, path)
    stolen = await http.post(
        f"{root}/bookmarks/{own.json()['id']}/tags",
        json={"tags": [{"tagId": tag_id}]},
        headers=mine,
    )

    assert stolen.status_code == 400
    assert (await http.get(f"{root}/tags", headers=mine)).json()["tags"] == []
    assert (await http.get(f"{root}/bookmarks/{bookmark}", headers=theirs)).status_code == 200


@pytest.mark.parametrize(
    ("q", "words", "favorite", "archived", "types"),
    [
        ("word", PageWord("word"), None, None, ALL_TYPES),
        ("is:fav -is:archived #tag", PageTag("tag"), True, False, ALL_TYPES),
        ("is:text", PageTerms([], is_any=True), None, None, (ItemType.NOTE,)),
        ("-is:text", PageTerms([], is_any=True), None, None, (ItemType.ARTICLE,)),
        ("-is:tagged", PageMark("untagged"), None, None, ALL_TYPES),
        ("-word", PageTerms((PageWord("word"),), is_none=True), None, None, ALL_TYPES),
        ("well-known", PageWord("well-known"), None, None, ALL_TYPES),
    ],
)
def test_searches_mean_what_they_mean_there(
    q: str,
    words: object,
    favorite: bool | None,
    archived: bool | None,
    types: tuple[ItemType, ...],
) -> None:
    found = parse_karakeep_search(q)

    assert found.words == words
    assert (found.favorite, found.archived, found.types) == (favorite, archived, types)
