"""A click's whole way: a real server, the lane, the spool, the ingester, the totals."""

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.redirect.outside import Outside
from tests.serving import PATIENCE, free_port, refract, serving

PERSON = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", "referer": "https://news.example.org/a?secret=1"}


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("role", ["all", "web"])
def test_a_redirect_is_counted_once_and_the_figures_add_up(tmp_path: Path, role: str) -> None:
    data = tmp_path / "data"
    outside = Outside(data)
    with serving(data, "--role", role) as server, httpx.Client(base_url=server.url, headers=PERSON) as client:
        link = outside.link("https://example.com/landing?x=1", name="road-map")
        answers = [client.get("/Road_Map", params={"utm_source": "mail"}) for _ in range(5)]
        client.head("/road-map")

        assert {answer.status_code for answer in answers} == {302}
        assert {answer.headers["location"] for answer in answers} == {"https://example.com/landing?x=1"}
        assert all("x-request-id" not in answer.headers for answer in answers)
        eventually(lambda: outside.clicks(link.id) == 5)
        metrics = client.get("/metrics").text
        assert 'refract_lookups_total{tier="database"} 2.0' in metrics  # one for each spelling
        assert 'refract_lookups_total{tier="memory"} 4.0' in metrics
        assert "refract_clicks_kept_total 5.0" in metrics
        assert "road" not in metrics.lower()

    verified = refract("verify", "--data-dir", str(data))
    assert verified.returncode == 0, verified.stderr
    assert "Everything adds up." in verified.stdout
    assert outside.clicks(link.id) == 5


def test_a_redirect_node_spools_and_a_worker_beside_it_ingests(tmp_path: Path) -> None:
    data = tmp_path / "data"
    outside = Outside(data)
    with (
        serving(data, "--role", "worker") as worker,
        serving(data, "--role", "redirect") as server,
        httpx.Client(headers=PERSON) as client,
    ):
        link = outside.link(name="n")
        assert [client.get(f"{server.url}/n").status_code for _ in range(3)] == [302] * 3
        assert client.get(f"{server.url}/{outside.code(link.id)}").status_code == 302
        eventually(lambda: outside.clicks(link.id) == 4)

        assert client.get(f"{server.url}/").status_code == 404
        assert client.get(f"{server.url}/app/links").status_code == 404
        assert client.get(f"{worker.url}/n").status_code == 404
        for one in (worker, server):
            assert client.get(f"{one.url}/health").json()["status"] == "ok"
            assert client.get(f"{one.url}/ready").json()["status"] == "ready"
            assert "refract_" in client.get(f"{one.url}/metrics").text


def test_a_redirect_node_whose_clicks_nobody_stores_does_not_start(tmp_path: Path) -> None:
    done = refract("serve", "--role", "redirect", "--port", str(free_port()), "--data-dir", str(tmp_path / "data"))

    assert done.returncode == 2
    assert "Nobody stores the clicks" in done.stderr
    assert "REFRACT_SPOOL_READER=elsewhere" in done.stderr
