"""The library's whole story on a real server with real workers: no network, no model.

Then a model whose worker is killed.
"""

import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.library.outside import SlowModel, model_by_thread, pages_by_thread, twenty_pages
from tests.serving import Served, refract, serving
from tests.waiting import PATIENCE, eventually_blocking

LOOPBACK: dict[str, Any] = {"REFRACT_FETCH_ALLOW": "127.0.0.0/8"}


def _client(url: str, data: Path) -> httpx.Client:
    key = refract("keys", "create", "--name", "test", "--data-dir", str(data)).stdout.strip()
    return httpx.Client(base_url=f"{url}/api/v1", headers={"X-API-Key": key}, timeout=30)


def _pending(client: httpx.Client, status: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get(
        "/items/pending", params={"limit": 200, "status": status}
    ).json()["items"]
    return items


@contextmanager
def _browser(server: Served) -> Iterator[httpx.Client]:
    """Signed in by the link that the first start offers."""
    with httpx.Client(
        base_url=server.url, headers={"Accept": "text/html", "Origin": server.url}, timeout=30
    ) as browser:
        assert browser.post(server.signin_link).status_code == 303
        yield browser


def _search(
    client: httpx.Client,
    browser: httpx.Client,
    articles: list[dict[str, Any]],
    note: dict[str, Any],
) -> None:
    """Words of the title, of the fetched page alone, by their beginnings, in another case, with a
    tag: API and page say the same.
    """
    bread, engines = (
        {item["id"] for item in articles if f"/{topic}/" in item["url"]}
        for topic in ("bread", "engines")
    )
    fourth = {item["id"] for item in articles if item["url"].endswith("/bread/four")}
    for words, wanted in {
        "sourdough": bread,
        "PATIENCE": bread,
        "conden pist": engines,
        "steam engine": engines | {note["id"]},
        "steam #engines -thought": engines,
        "bread four": fourth,
        "#bread": bread,
        "unicorns": set(),
    }.items():
        by_api = client.get("/library", params={"q": words}).json()
        assert ({item["id"] for item in by_api["items"]}, by_api["approximate"]) == (
            wanted,
            False,
        ), words
        page = browser.get("/app/library", params={"q": words})
        assert page.status_code == 200
        assert set(re.findall(r'href="/app/library/(\d+)"', page.text)) == wanted, words


def test_twenty_pages_without_network_or_model(tmp_path: Path) -> None:
    data, pages = tmp_path / "data", twenty_pages()
    with (
        pages_by_thread(pages) as site,
        serving(data, **LOOPBACK) as server,
        _client(server.url, data) as client,
    ):
        first, *others = pages
        one = client.post(
            "/items", json={"text": f"{site}{first}"}, headers={"Idempotency-Key": "train"}
        )
        again = client.post(
            "/items", json={"text": f"{site}{first}"}, headers={"Idempotency-Key": "train"}
        )
        assert (one.status_code, one.json()["id"]) == (201, again.json()["id"])
        saved = client.post(
            "/items/bulk", json={"paste": "\n".join(f"{site}{path}" for path in others)}
        ).json()
        assert saved["created"] == 19
        command = refract(
            "save", "A thought about steam engines.", "--tag", "engines", "--data-dir", str(data)
        )
        assert (command.returncode, command.stderr) == (0, "")

        eventually_blocking(lambda: len(_pending(client, "READY_TO_CONFIRM")) == 21, 2 * PATIENCE)

        ready = _pending(client, "READY_TO_CONFIRM")
        assert {item["enrichment"] for item in ready} == {"SYSTEM"}
        articles = [item for item in ready if item["type"] == "ARTICLE"]
        assert len(articles) == 20
        for item in articles:
            topic = item["url"].split("/")[-2]
            found = {one["name"]: one for one in item["suggestions"]}
            assert topic in found, item
            assert item["summary"]
            kept = client.post(
                f"/items/{item['id']}/confirm", json={"accept": [found[topic]["id"]]}
            )
            assert (kept.status_code, kept.json()["status"]) == (200, "ARCHIVED")
            assert [tag["name"] for tag in kept.json()["tags"]] == [topic]
        note = next(item for item in ready if item["type"] == "NOTE")
        assert note["id"] == command.stdout.strip()
        assert (
            client.post(f"/items/{note['id']}/confirm").json()["title"]
            == "A thought about steam engines."
        )
        assert client.get("/items/pending").json()["items"] == []
        twice = client.post("/items", json={"text": f"{site}{first}/?utm_source=mail"}).json()
        assert twice["duplicate_of"] == one.json()["id"]
        assert client.get("/me/quota").json()["used"] == 0
        with _browser(server) as browser:
            _search(client, browser, articles, note)


def test_a_worker_killed_in_the_middle_of_a_model_call_charges_once(tmp_path: Path) -> None:
    data, model = tmp_path / "data", SlowModel()
    with model_by_thread(model) as url:
        fast: dict[str, Any] = {
            "REFRACT_MODEL_URL": url,
            "REFRACT_MODEL_NAME": "tiny",
            "REFRACT_JOB_LEASE_SECONDS": "2",
            **LOOPBACK,
        }
        with serving(data, **fast) as server:
            with _client(server.url, data) as client:
                item = client.post("/items", json={"text": "A thought about steam engines."}).json()
            assert model.asked.acquire(timeout=PATIENCE)
            server.signal(signal.SIGKILL)
            server.wait()
        with serving(data, **fast) as server, _client(server.url, data) as client:
            assert model.asked.acquire(timeout=2 * PATIENCE), "another worker asks again"
            model.go.set()
            eventually_blocking(
                lambda: client.get(f"/items/{item['id']}").json()["status"] == "READY_TO_CONFIRM"
            )
            seen, quota = client.get(f"/items/{item['id']}").json(), client.get("/me/quota").json()
    assert (seen["enrichment"], seen["note"], quota["used"]) == ("AI", None, 1)
    assert len(seen["suggestions"]) == len({one["name"].casefold() for one in seen["suggestions"]})
    with closing(sqlite3.connect(data / "refract.db")) as database:
        assert database.execute("SELECT kind, units FROM usage_ledger").fetchall() == [
            ("charge", 1)
        ]
