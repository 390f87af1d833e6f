"""`refract doctor`: problems are reported with a remedy; a healthy set-up has none."""

import asyncio
import json
import os
import re
from ipaddress import ip_network
from pathlib import Path

import pytest

from refract.cli.doctor import run_checks
from refract.cli.doctor.findings import DoctorFinding, FindingStatus
from refract.clicks.spool.reader import has_ingester
from refract.core.settings.model import Settings
from tests.conftest import make_settings
from tests.serving import refract, serving
from tests.waiting import eventually_blocking
from tools.servers import Redis as RedisServer
from tools.servers import free_port


def by_subject(found: list[DoctorFinding], verdict: FindingStatus) -> dict[str, str]:
    return {finding.subject: finding.message for finding in found if finding.status is verdict}


async def test_a_healthy_set_up_on_each_database(
    settings: Settings, redis_server: RedisServer
) -> None:
    settings.data_dir.mkdir(mode=0o700)
    found = await run_checks(settings.model_copy(update={"redis_url": redis_server.url}))

    assert by_subject(found, FindingStatus.ERROR) == {}
    assert {"address", "database", "schema", "version", "redis", "spool"} <= by_subject(
        found, FindingStatus.OK
    ).keys()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_settings_that_do_not_fit_together(settings: Settings, tmp_path: Path) -> None:
    settings.data_dir.mkdir(mode=0o700)
    strange = {
        "environment": "production",
        "base_url": None,
        "trusted_proxies": (ip_network("0.0.0.0/0"),),
        "blocklist_path": tmp_path / "absent",
        "workers": 64,
        "role": "redirect",
    }
    found = await run_checks(settings.model_copy(update=strange))

    assert {"address", "proxies", "blocklist", "clicks"} == by_subject(
        found, FindingStatus.ERROR
    ).keys()
    assert "processes" in by_subject(found, FindingStatus.WARNING)
    assert all(finding.remedy for finding in found if finding.status is not FindingStatus.OK)


async def test_servers_that_are_away(tmp_path: Path) -> None:
    port = free_port()
    away = make_settings(
        tmp_path,
        database_url=f"postgresql://nobody@127.0.0.1:{port}/x",
        redis_url=f"redis://127.0.0.1:{port}/0",
    )
    found = await run_checks(away)

    assert "can't be reached" in by_subject(found, FindingStatus.ERROR)["database"]
    assert (
        "isn't responding" in by_subject(found, FindingStatus.WARNING)["redis"]
    )  # everything works without it


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "refract.db").write_text("this is not a database" * 100)
    found = await run_checks(make_settings(tmp_path))

    assert "refract.db" in by_subject(found, FindingStatus.ERROR)["database"]


async def test_directories(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = await run_checks(make_settings(tmp_path / "file" / "below"))
    assert "data directory" in by_subject(found, FindingStatus.ERROR)

    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    await asyncio.to_thread(os.chmod, open_to_all, 0o755)
    found = await run_checks(make_settings(open_to_all))
    assert (
        "Other users of this machine can read"
        in by_subject(found, FindingStatus.WARNING)["data directory"]
    )


async def test_an_installation_that_is_elsewhere(tmp_path: Path) -> None:
    """Regression: without the service's environment it only suggested `refract serve`."""
    found = {
        finding.subject: finding for finding in await run_checks(make_settings(tmp_path / "empty"))
    }

    assert found["database"].status is FindingStatus.ERROR
    assert "--env-file" in found["database"].remedy


def test_the_command(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data):
        eventually_blocking(
            lambda: has_ingester(data / "spool")
        )  # it starts shortly after the first responses
        said = refract("doctor", "--data-dir", str(data))
        assert "ingester running" in said.stdout
        for part in ("fast lane", "ingest"):
            assert re.search(part + r" +(Compiled|Python, because .+:)", said.stdout), said.stdout
        assert said.returncode == 0, said.stdout + said.stderr
        assert "0 errors" in said.stdout
        assert all(
            line.startswith(("   ok ", " warn ", " " * 7)) for line in said.stdout.splitlines()[:-1]
        ), said.stdout
    told = refract("doctor", "--data-dir", str(data), "--role", "redirect", "--json")
    assert told.returncode == 1
    assert [one["subject"] for one in json.loads(told.stdout) if one["status"] == "error"] == [
        "clicks"
    ]


def test_it_looks_at_the_address_that_the_server_has(tmp_path: Path) -> None:
    """Finding: a server with `--port 9000` was looked for at port 8000, and so were short URLs."""
    data = tmp_path / "data"
    with serving(data) as server:
        eventually_blocking(lambda: has_ingester(data / "spool"))
        told = refract("doctor", "--data-dir", str(data), "--json", REFRACT_PORT="1")

    said = {finding["subject"]: finding["message"] for finding in json.loads(told.stdout)}
    assert said["address"] == f"Short URLs start with {server.url}."
    assert said["server"] == f"Responds at {server.url}."
