"""linkding's REST API by aiolinkding, linkding-cli, and recorded requests of other clients."""

from datetime import UTC, datetime

import httpx
import pytest

from refract.compat.search import parse_search
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.library.queries.numbered import PageMark, PageTag, PageTerms, PageWord
from tests.client import on_sqlite
from tests.compat.conftest import run_client

Headers = dict[str, str]


@pytest.fixture
def token(key: str) -> Headers:
    return {"Authorization": f"Token {key}"}


async def test_real_clients_keep_bookmarks(rt: Runtime, address: str, key: str) -> None:
    steps = await run_client("linkding.py", address, key)

    made = steps["create"]
    assert isinstance(made["id"], int)
    assert made["id"] < 2**31
    assert (made["title"], made["description"], made["notes"]) == ("Page", "About", "Mine")
    assert made["tag_names"] == ["a", "b"]
    assert (made["unread"], made["shared"], made["is_archived"]) == (False, False, False)
    assert made["date_added"] == "2026-06-01T12:00:00.000000Z"
    assert steps["again"]["id"] != made["id"]  # a path in capitals is another page
    assert steps["same"]["id"] == made["id"]
    assert (steps["same"]["title"], steps["same"]["unread"]) == ("Other", True)
    assert steps["list"]["count"] == 2
    assert steps["list"]["next"] == f"{address}/api/bookmarks/?limit=1&offset=1"
    assert [found["id"] for found in steps["search"]["results"]] == [made["id"]]
    assert steps["missed"]["results"] == []
    assert steps["one"]["id"] == made["id"]
    assert (steps["update"]["title"], steps["update"]["tag_names"]) == ("Updated", ["c"])
    assert steps["update"]["description"] == "About"
    assert [found["id"] for found in steps["archived"]["results"]] == [made["id"]]
    assert [found["id"] for found in steps["rest"]["results"]] == [steps["again"]["id"]]
    assert [tag["name"] for tag in steps["tags"]["results"]] == ["a", "b", "c"]
    assert steps["tag"]["name"] == "a"
    assert steps["wrong_tag"]["failed"] == "RequestError"  # it sends another field
    assert steps["profile"]["theme"] == "auto"
    assert steps["absent"]["failed"] == "UnknownEndpointError"
    assert steps["delete"] is None
    assert steps["deleted"]["failed"] == "UnknownEndpointError"
    assert steps["bad_token"]["failed"] == "InvalidTokenError"
    assert steps["cli_create"]["title"] == "By command"
    assert steps["cli_get"]["id"] == steps["cli_create"]["id"]
    assert steps["cli_all"]["count"] == 1
    assert steps["cli_tags"]["count"] == 3
    assert steps["cli_profile"]["theme"] == "auto"
    for name in ("cli_archive", "cli_delete"):
        assert "failed" not in steps[name], steps[name]


async def test_the_extension_checks_and_saves(http: httpx.AsyncClient, token: Headers) -> None:
    """The recorded requests of the official browser extension."""
    url = "http://www.Example.com/article?b=1"
    tested = await http.get("/api/tags/?limit=1", headers=token)
    unknown = await http.get("/api/bookmarks/check/", params={"url": url}, headers=token)
    saved = await http.post(
        "/api/bookmarks/?disable_html_snapshot",
        json={"url": url, "title": "An article", "tag_names": ["x"], "unread": True},
        headers=token,
    )
    known = await http.get("/api/bookmarks/check", params={"url": url}, headers=token)
    searched = await http.get(
        "/api/bookmarks/", params={"q": "!unread article", "limit": 5}, headers=token
    )
    deleted = await http.delete(f"/api/bookmarks/{saved.json()['id']}", headers=token)

    assert tested.status_code == 200
    assert unknown.json()["bookmark"] is None
    assert unknown.json()["metadata"]["url"] == url
    assert saved.status_code == 201
    assert known.json()["bookmark"] == saved.json()
    assert [found["id"] for found in searched.json()["results"]] == [saved.json()["id"]]
    assert deleted.status_code == 204


async def test_numbers_are_never_given_twice(
    http: httpx.AsyncClient, token: Headers, other_key: str
) -> None:
    made = [
        (
            await http.post(
                "/api/bookmarks/",
                json={"url": f"https://example.com/{path}", "title": "T"},
                headers=token,
            )
        ).json()["id"]
        for path in "abc"
    ]
    await http.delete(f"/api/bookmarks/{made[-1]}/", headers=token)
    tag = await http.post("/api/tags/", json={"name": "new"}, headers=token)
    other = {"Authorization": f"Bearer {other_key}"}
    foreign = await http.get(f"/api/bookmarks/{made[0]}/", headers=other)
    theirs = await http.post(
        "/api/bookmarks/", json={"url": "https://example.com/a", "title": "T"}, headers=other
    )

    assert made == [1, 2, 3]
    assert tag.json()["id"] == 4
    assert foreign.status_code == 404
    assert foreign.json() == {"detail": "No Bookmark matches the given query."}
    assert theirs.json()["id"] == 1


@on_sqlite
async def test_what_is_not_kept_is_refused(http: httpx.AsyncClient, token: Headers) -> None:
    async def post(**fields: object) -> tuple[int, object]:
        response = await http.post("/api/bookmarks/", json=fields, headers=token)
        return response.status_code, response.json()

    assert await post() == (400, {"url": ["This field is required."]})
    assert await post(url="no address") == (400, {"url": ["Enter a valid URL."]})
    url = "https://example.com/"
    assert await post(url=url, shared=True) == (
        400,
        {"shared": ["Bookmarks can't be shared here."]},
    )
    status, errors = await post(url=url, notes="n" * 10_001)
    assert (status, errors) == (400, {"notes": ["Enter at most 10000 characters."]})
    assert (await http.get("/api/bookmarks/", headers=token)).json()["count"] == 0


@on_sqlite
async def test_given_dates_are_kept(
    rt: Runtime, ada: User, http: httpx.AsyncClient, token: Headers
) -> None:
    old = datetime(2020, 9, 26, 9, 46, 23, 6313, UTC)
    response = await http.post(
        "/api/bookmarks/",
        json={"url": "https://example.com/", "title": "T", "date_added": old.isoformat()},
        headers=token,
    )
    since = await http.get(
        "/api/bookmarks/", params={"added_since": "2021-01-01T00:00:00Z"}, headers=token
    )

    assert response.json()["date_added"] == "2020-09-26T09:46:23.006313Z"
    assert since.json()["count"] == 0


@on_sqlite
async def test_health_has_the_form_of_linkding_only_for_its_clients(
    http: httpx.AsyncClient, token: Headers
) -> None:
    ours = await http.get("/health")
    theirs = await http.get("/health", headers=token)

    assert ours.json() == {"status": "ok"}
    assert theirs.json() == {"version": "1.46.2", "status": "healthy"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("", PageTerms()),
        ("word", PageWord("word")),
        ('"two words" #tag', PageTerms((PageWord("two words"), PageTag("tag")))),
        ("a and b", PageTerms((PageWord("a"), PageWord("b")))),
        ("a or b", PageTerms([PageWord("a"), PageWord("b")], is_any=True)),
        ("not a", PageTerms((PageWord("a"),), is_none=True)),
        ("!unread", PageMark("unread")),
        ("((((((((((((((((((((a", PageWord("a")),
        (") or ( and not", PageTerms((), is_any=True)),
    ],
)
def test_searches_mean_what_they_mean_there(typed: str, meant: object) -> None:
    found = parse_search(typed)
    if isinstance(found, PageTerms) and isinstance(meant, PageTerms):
        assert (list(found.terms), found.is_none) == (list(meant.terms), meant.is_none)
    else:
        assert found == meant
