"""A click's whole way: a real server, the lane, the spool, the ingester, the totals."""

import re
from pathlib import Path

import httpx
import pytest

from refract.redirect.lane import LANE
from tests.redirect.outside import Outside
from tests.serving import refract, serving
from tests.waiting import PATIENCE, eventually_blocking
from tools.servers import Redis as RedisServer

PERSON = {
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
    "referer": "https://news.example.org/a?secret=1",
}


def _read_metrics(client: httpx.Client, wanted: str) -> str:
    """Return the metrics once this is among them: a busy process may be missing from those of
    several.
    """
    found: list[str] = []

    def told() -> bool:
        found.append(client.get("/metrics").text)
        return wanted in found[-1]

    eventually_blocking(told)
    return found[-1]


@pytest.mark.parametrize("role", ["all", "web"])
def test_a_redirect_is_counted_once_and_the_figures_add_up(tmp_path: Path, role: str) -> None:
    process = '{process="redirect"}' if role == "all" else ""  # of two
    lookups = 'refract_lookups_total{process="redirect",' if process else "refract_lookups_total{"
    data = tmp_path / "data"
    outside = Outside(data)
    with (
        serving(data, "--role", role, REFRACT_BACKGROUND="process") as server,
        httpx.Client(base_url=server.url, headers=PERSON, timeout=PATIENCE) as client,
    ):
        link = outside.link("https://example.com/landing?x=1", name="road-map")
        eventually_blocking(
            lambda: re.search(
                rf"refract_cache_forgotten_total{re.escape(process)} [1-9]",
                client.get("/metrics").text,
            )
        )  # the news of the link's own birth
        answers = [client.get("/Road_Map", params={"utm_source": "mail"}) for _ in range(5)]
        client.head("/road-map")

        assert {answer.status_code for answer in answers} == {302}
        assert {answer.headers["location"] for answer in answers} == {
            "https://example.com/landing?x=1"
        }
        assert all("x-request-id" not in answer.headers for answer in answers)
        eventually_blocking(lambda: outside.clicks(link.id) == 5)
        metrics = _read_metrics(client, lookups)
        assert f'{lookups}tier="database"}} 2.0' in metrics  # one for each spelling
        assert f'{lookups}tier="memory"}} 4.0' in metrics
        assert f"refract_clicks_kept_total{process} 5.0" in metrics
        lane = 'refract_lane{process="redirect",' if process else "refract_lane{"
        assert f'{lane}implementation="{LANE}"}} 1.0' in metrics
        assert "road" not in metrics.lower()

    verified = refract("verify", "--data-dir", str(data))
    assert verified.returncode == 0, verified.stderr
    assert "All clicks are accounted for." in verified.stdout
    assert outside.clicks(link.id) == 5


def test_a_redirect_node_spools_and_a_worker_beside_it_ingests(tmp_path: Path) -> None:
    data = tmp_path / "data"
    outside = Outside(data)
    with (
        serving(data, "--role", "worker") as worker,
        serving(data, "--role", "redirect") as server,
        httpx.Client(headers=PERSON, timeout=PATIENCE) as client,
    ):
        link = outside.link(name="n")
        assert [client.get(f"{server.url}/n").status_code for _ in range(3)] == [302] * 3
        assert client.get(f"{server.url}/{outside.code(link.id)}").status_code == 302
        eventually_blocking(lambda: outside.clicks(link.id) == 4)

        assert client.get(f"{server.url}/").status_code == 404
        assert client.get(f"{server.url}/app/links").status_code == 404
        assert client.get(f"{worker.url}/n").status_code == 404
        for one in (worker, server):
            assert client.get(f"{one.url}/health").json()["status"] == "ok"
            assert client.get(f"{one.url}/ready").json()["status"] == "ready"
            assert "refract_" in client.get(f"{one.url}/metrics").text


def test_a_redirect_node_whose_clicks_nobody_would_store_does_not_start(tmp_path: Path) -> None:
    refused = refract(
        "serve", "--role", "redirect", "--port", "0", "--data-dir", str(tmp_path / "data")
    )

    assert refused.returncode == 1
    assert "No process stores the clicks" in refused.stderr
    assert "REFRACT_REDIS_URL" in refused.stderr


def test_with_redis_a_redirect_node_and_a_worker_need_no_common_directory(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    data, apart = tmp_path / "data", tmp_path / "apart"
    outside = Outside(data)
    redis, database = redis_server.url, f"sqlite:///{data / 'refract.db'}"
    with (
        serving(data, "--role", "worker", REFRACT_REDIS_URL=redis, REFRACT_DATABASE_URL=database),
        serving(
            apart, "--role", "redirect", REFRACT_REDIS_URL=redis, REFRACT_DATABASE_URL=database
        ) as server,
        httpx.Client(headers=PERSON, timeout=PATIENCE) as client,
    ):
        link = outside.link(name="n")
        assert [client.get(f"{server.url}/n").status_code for _ in range(7)] == [302] * 7
        eventually_blocking(lambda: outside.clicks(link.id) == 7)
        assert client.get(f"{server.url}/ready").json()["dependencies"]["redis"]["status"] == "ok"
        redis_server.stop()
        assert [client.get(f"{server.url}/n").status_code for _ in range(5)] == [302] * 5
        assert client.get(f"{server.url}/ready").json()["status"] == "degraded"
        redis_server.start()
        eventually_blocking(lambda: outside.clicks(link.id) == 12)
