"""Alerts, evaluated against what real nodes say.

Operations finding 2.6: with the only worker killed nothing fired: what would have shown it was
exported by the dead worker alone.
"""

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from tests.deploy.promql import Scrape, evaluate
from tests.redirect.outside import Outside
from tests.serving import Served, refract, serving
from tests.waiting import PATIENCE, eventually_blocking

ROOT = Path(__file__).parents[2]
RULES: list[dict[str, Any]] = yaml.safe_load(
    (ROOT / "deploy/prometheus/refract-alerts.yml").read_text()
)["groups"][0]["rules"]
TOKEN = "the-token-of-prometheus"


def scrape(nodes: dict[str, Served]) -> Scrape:
    """Ask every node as Prometheus would, and note which of them answer."""
    found = Scrape(time.time())
    for role, node in nodes.items():
        target = {"job": "refract", "instance": f"127.0.0.1:{node.port}"}
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.get(
                f"{node.url}/metrics",
                headers={"authorization": f"Bearer {TOKEN}"},
                timeout=PATIENCE,
            )
            assert answer.status_code == 200, (role, answer.text)
            found.add(answer.text, **target)
            found.add("up 1", **target)
            continue
        found.add("up 0", **target)
    return found


def firing(before: Scrape, after: Scrape) -> set[str]:
    return {rule["alert"] for rule in RULES if evaluate(rule["expr"], before, after)}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    """Web, worker and redirect nodes on one database.

    The worker stores the clicks of the redirect node.
    """
    home = tmp_path_factory.mktemp("fleet")
    url = f"sqlite:///{home}/shared.db"
    shared: dict[str, Any] = {
        "REFRACT_DATABASE_URL": url,
        "REFRACT_ARCHIVE_DIR": f"{home}/archive",
        "REFRACT_METRICS_TOKEN": TOKEN,
    }
    assert refract("migrate", "--data-dir", f"{home}/web", **shared).returncode == 0
    outside = Outside(home / "web", database_url=url)
    outside.link("https://example.com/there", name="here")
    made = refract("backup", f"{home}/backup.zip", "--data-dir", f"{home}/web", **shared)
    assert made.returncode == 0, made.stderr
    with (
        serving(home / "web", "--role", "web", **shared) as web,
        serving(home / "node", "--role", "worker", **shared) as worker,
        serving(home / "node", "--role", "redirect", **shared) as redirect,
    ):
        yield {"web": web, "worker": worker, "redirect": redirect}


@pytest.fixture(scope="module")
def healthy(fleet: dict[str, Served]) -> tuple[Scrape, Scrape]:
    def is_attended() -> bool:
        return not any(scrape(fleet).samples["refract_spool_unattended"].values())

    eventually_blocking(is_attended)  # nodes are ready before they begin to store clicks
    before = scrape(fleet)
    assert httpx.get(f"{fleet['redirect'].url}/here", timeout=PATIENCE).status_code == 302
    return before, scrape(fleet)


def set_machine(after: Scrape) -> None:
    """The machine that runs the tests may have a full disk, or be busy with other tests."""
    after.samples["refract_loop_longest_seconds"] = dict.fromkeys(
        after.samples["refract_loop_longest_seconds"], 0.0
    )
    for labels in after.samples["refract_disk_free_bytes"]:
        after.samples["refract_disk_free_bytes"][labels] = (
            after.samples["refract_disk_size_bytes"][labels] / 2
        )


def test_nothing_fires_on_a_healthy_fleet(healthy: tuple[Scrape, Scrape]) -> None:
    before, after = healthy
    set_machine(after)
    assert firing(before, after) == set()


CHANGES: dict[str, tuple[str, float]] = {
    "NodeDown": ("up", 0),
    "ClicksNotKept": ("refract_clicks_not_kept_total", 5),
    "ClicksWait": ("refract_ingest_lag_seconds", 61),
    "SpoolUnattended": ("refract_spool_unattended", 1),
    "SpoolGrows": ("refract_spool_bytes", 2e9),
    "SpoolDamaged": ("refract_spool_damaged", 1),
    "DiskFills": ("refract_disk_free_bytes", 1e6),
    "DiskAlmostFull": ("refract_disk_free_inodes_ratio", 0.01),
    "BackupOld": ("refract_backup_timestamp_seconds", 0),
    "ChangesUnheard": ("refract_changes_unheard", 1),
    "LoopBlocked": ("refract_loop_longest_seconds", 0.6),
    "JobsWait": ("refract_jobs_oldest_seconds", 601),
}
"""What a real node would say when it is so, changed in what a real node said."""
ADDED: dict[str, str] = {
    "ErrorsServed": 'refract_http_requests_total{method="GET",status="503"} 900',
    "RedisAway": "refract_redis_away 1",
    "JobsDead": 'refract_jobs_depth{kind="library.fetch",status="DEAD"} 1',
    "VersionsDiffer": 'refract_build_info{version="0.0.9",role="web"} 1',
}
"""What a node says only when there is something to say."""
GONE = {"NothingScraped": "up", "WorkersDead": "refract_build_info"}


@pytest.mark.parametrize("alert", [rule["alert"] for rule in RULES])
def test_each_alert_fires(alert: str, healthy: tuple[Scrape, Scrape]) -> None:
    before, found = healthy
    after = Scrape(found.now, {name: dict(vector) for name, vector in found.samples.items()})
    set_machine(after)
    if alert in ADDED:
        after.add(ADDED[alert], job="refract", instance="127.0.0.1:9")
    elif alert in GONE:
        del after.samples[GONE[alert]]
    else:
        name, value = CHANGES[alert]
        assert after.samples[name], "no node says this"
        after.samples[name] = dict.fromkeys(after.samples[name], value)

    assert alert in firing(before, after)


def test_a_spool_shared_by_processes_is_counted_once(healthy: tuple[Scrape, Scrape]) -> None:
    """`SpoolGrows` added the same directory up once per process, and fired at half the size with
    two.
    """
    before, found = healthy
    after = Scrape(found.now, {name: dict(vector) for name, vector in found.samples.items()})
    after.samples["refract_spool_bytes"] = {}
    for process in ("1", "2"):
        after.add(f'refract_spool_bytes{{process="{process}"}} 6e8', instance="127.0.0.1:9")

    assert "SpoolGrows" not in firing(before, after)


def test_a_dead_worker_is_noticed(fleet: dict[str, Served], healthy: tuple[Scrape, Scrape]) -> None:
    """Last of this file: the worker does not come back."""
    fleet["worker"].process.kill()
    fleet["worker"].process.wait(PATIENCE)
    assert httpx.get(f"{fleet['redirect'].url}/here", timeout=PATIENCE).status_code == 302

    after = scrape(fleet)
    set_machine(after)
    assert {"NodeDown", "WorkersDead", "SpoolUnattended"} <= firing(healthy[0], after)
    assert after.samples["refract_jobs_oldest_seconds"], "the web node says how long jobs wait"


def test_every_alert_has_a_runbook() -> None:
    told = (ROOT / "docs/how-to/alerts.md").read_text()
    sections = set(re.findall(r"^## (\w+)$", told, re.MULTILINE))

    assert {rule["alert"] for rule in RULES} == sections
