"""The sample files are right: every setting they name exists, every figure on the dashboard is
counted, and the front really is one.
"""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from refract.app import WebNode
from refract.clicks.ingest.consumer import StreamConsumer
from refract.clicks.ingest.ingester import Ingester
from refract.clicks.ingest.shipper import SpoolShipper
from refract.core.db.session import WriteSession
from refract.core.extraction.pool import ExtractionPool
from refract.core.loop_lag import LoopLagProbe
from refract.core.redis import create_redis
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.models import User
from refract.jobs import metrics as job_metrics
from refract.lists import service as lists
from refract.lists.access import ListCaller as ListMaker
from tests import make
from tests.conftest import make_settings
from tests.redirect.outside import Outside
from tests.services_plugin import ABSENT
from tests.serving import serving
from tests.waiting import PATIENCE
from tools import packages
from tools.servers import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
OF_PROMETHEUS = {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"}


def test_every_setting_that_is_named_exists() -> None:
    named: dict[str, set[str]] = {}
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            for name in re.findall(r"\bREFRACT_([A-Z_]+[A-Z])\b", path.read_text()):
                named.setdefault(name.lower(), set()).add(path.name)

    assert {name: files for name, files in named.items() if name not in Settings.model_fields} == {}
    assert len(named) > 10


def compose(name: str) -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text())
    return told


@pytest.mark.parametrize("name", ["compose.yaml", "compose.one.yaml"])
def test_compose_files_name_what_exists_and_bound_what_runs(name: str) -> None:
    told = compose(name)

    for service in told["services"].values():
        assert "mem_limit" in service
        assert set(service["networks"]) <= set(told["networks"])
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in told["volumes"] or (DEPLOY / source).is_file(), volume
        if service.get("image") == "refract":
            assert service["read_only"]
            assert service["cap_drop"] == ["ALL"]


def test_the_fleet_shares_its_archive_and_trusts_its_front_alone() -> None:
    """Each role had its own directory: exports of old clicks broke and backups left them out.

    All of 172.16.0.0/12 was trusted.
    """
    services = compose("compose.yaml")["services"]
    roles = {
        service["environment"]["REFRACT_ROLE"]: service
        for name, service in services.items()
        if name in ("web", "redirect", "worker")
    }

    assert set(roles) == {"web", "redirect", "worker"}
    for name in ("web", "worker", "backup"):
        given = services[name]
        assert f"archive:{given['environment']['REFRACT_ARCHIVE_DIR']}" in given["volumes"]
    front = services["front"]["networks"]["inside"]["ipv4_address"]
    for service in roles.values():
        assert service["environment"]["REFRACT_TRUSTED_PROXIES"] == f"{front}/32"
    users = {
        role: service["environment"]["REFRACT_DATABASE_URL"].split("://")[1].split(":")[0]
        for role, service in roles.items()
    }
    assert users == {"web": "refract_web", "worker": "refract_web", "redirect": "refract_redirect"}
    assert compose("compose.yaml")["networks"]["inside"]["internal"]
    assert services["redirect"]["networks"] == ["inside"]
    assert "ports" not in services["postgresql"]
    assert "requirepass" in " ".join(services["redis"]["command"])


def test_the_fronts_agree_on_who_answers_what() -> None:
    nginx, caddy = (
        (DEPLOY / "nginx/refract_locations.conf").read_text(),
        (DEPLOY / "caddy/Caddyfile").read_text(),
    )
    (folders,) = re.findall(r"\^/\(([^)]+)\)\(/\|\$\)", nginx)
    (files,) = re.findall(r"\^/\(([^)]+)\)\$", nginx)
    (web,) = re.findall(r"@web path (.*)", caddy)

    wanted = {name.replace("\\", "") for name in (*folders.split("|"), *files.split("|"), "")}
    assert {path.removeprefix("/").removesuffix("/*") for path in web.split()} == wanted
    for inside in ("/metrics", "/ready"):
        assert inside in re.findall(r"@inside path (.*)", caddy)[0].split()


def test_units_share_the_archive_and_tell_of_a_failed_backup() -> None:
    units = {path.name: path.read_text() for path in (DEPLOY / "systemd").iterdir()}

    for name in ("refract@.service", "refract-backup.service"):
        assert "REFRACT_ARCHIVE_DIR=/var/lib/refract/archive" in units[name]
        assert "refract/archive" in re.findall(r"StateDirectory=(.*)", units[name])[0].split()
    assert "OnFailure=refract-alert@%n.service" in units["refract-backup.service"]
    for name in ("refract.service", "refract@.service"):
        for line in (
            "SystemCallFilter=@system-service",
            "ProtectProc=invisible",
            "RestrictSUIDSGID=yes",
            "MemoryMax=2G",
            "ProtectClock=yes",
        ):
            assert line in units[name].splitlines(), (name, line)


@pytest.mark.parametrize("unit", sorted(path.name for path in (DEPLOY / "systemd").iterdir()))
def test_units_are_what_systemd_understands(unit: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip(f"{ABSENT}systemd-analyze")
    for path in (DEPLOY / "systemd").iterdir():
        # The program of the machine it is meant for is not here; everything else must be right.
        (tmp_path / path.name).write_text(
            path.read_text().replace("/opt/refract/bin/refract", "/bin/true")
        )
    name = unit.replace("@.", "@redirect.")
    if name != unit:
        shutil.copy(tmp_path / unit, tmp_path / name)
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / name], capture_output=True, text=True, check=False
    )

    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or name in line]
    assert said == []


def expressions(node: object) -> list[str]:
    """Every query of a dashboard or of a file of alerts."""
    if isinstance(node, dict):
        return [
            text
            for key, value in node.items()
            for text in ([value] if key == "expr" else expressions(value))
        ]
    return [text for value in node for text in expressions(value)] if isinstance(node, list) else []


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    return make_settings(
        tmp_path / "data", database_url=database, redis_url="redis://127.0.0.1:1/0"
    )


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_every_figure_that_is_drawn_or_watched_is_counted(rt: Runtime) -> None:
    redis = rt.singleton(create_redis)
    assert redis is not None
    application = WebNode(rt)
    ingester = Ingester(rt)
    SpoolShipper(rt, redis)
    StreamConsumer(rt, redis, ingester)
    await job_metrics.update_job_gauges(rt)
    job_metrics.count_job(rt, "any", "done")
    LoopLagProbe(rt)
    rt.singleton(ExtractionPool)
    told = re.findall(rb"^# TYPE (\S+) (\S+)$", rt.metrics.render(), re.MULTILINE)
    assert application.engine is not None
    application.engine.spool.close()
    await rt.close()
    counted = {name.decode() for name, kind in told if kind != b"histogram"} | OF_PROMETHEUS
    counted |= {
        f"{name.decode()}_{part}"
        for name, kind in told
        if kind == b"histogram"
        for part in ("bucket", "sum", "count")
    }

    queries = expressions(json.loads((DEPLOY / "grafana/refract.json").read_text()))
    queries += expressions(yaml.safe_load((DEPLOY / "prometheus/refract-alerts.yml").read_text()))
    drawn = {
        name for query in queries for name in re.findall(r"\b(?:refract|process)_[a-z_]+", query)
    }
    assert len(drawn) > 15
    assert drawn - counted == set()
    ours = {
        name
        for name in counted
        if name.startswith("refract_") and not name.endswith(("_created", "_sum", "_count"))
    }
    assert ours - drawn == set()  # and nothing that is counted is left out


def test_the_front_sends_everybody_where_they_belong(tmp_path: Path) -> None:
    nginx = packages.find("nginx")
    if nginx is None or shutil.which("openssl") is None:
        pytest.skip(f"{ABSENT}nginx")
    data, port, secure = tmp_path / "data", free_port(), free_port()
    outside = Outside(data)
    given: dict[str, Any] = {
        "REFRACT_TRUSTED_PROXIES": "127.0.0.1/32",
        "REFRACT_BASE_URL": "https://go.example.com",
        "REFRACT_METRICS_TOKEN": "scraper",
    }
    scraper = {"authorization": "Bearer scraper"}
    with (
        serving(data, "--role", "web", **given) as web,
        serving(data, "--role", "redirect", **given) as redirect,
    ):
        outside.link("https://example.com/there", name="here")
        outside.write(lambda session, rt: _published(session, rt, outside.owner))
        ports = {"8001": redirect.port, "8002": redirect.port, "8011": web.port, "8012": web.port}
        front = _front(tmp_path, nginx, ports, port, secure)
        try:
            _wait(port)
            where: Any = {
                "base_url": f"https://127.0.0.1:{secure}",
                "headers": {"host": "go.example.com"},
            }
            client = httpx.Client(
                verify=False,  # noqa: S501 - our own certificate
                trust_env=False,
                timeout=PATIENCE,
                **where,
            )
            with client:
                moved = client.get(f"http://127.0.0.1:{port}/here")
                assert (moved.status_code, moved.headers["location"]) == (
                    308,
                    "https://go.example.com/here",
                )
                answer = client.get("/here")
                assert (answer.status_code, answer.headers["location"]) == (
                    302,
                    "https://example.com/there",
                )
                assert client.get("/").status_code == 200
                assert client.get("/api/v1/names/free").json()["available"] is True
                assert client.post("/api/v1/links", json={}).status_code == 401
                assert client.get("/api/v1/links/1").status_code == 401
                assert (
                    client.get("/nothing-here", headers={"accept": "application/json"}).json()[
                        "code"
                    ]
                    == "SHORT_LINK_NOT_FOUND"
                )
                assert (
                    "What we read" in client.get("/reading", headers={"accept": "text/html"}).text
                )
                assert client.get("/reading/1").headers["location"] == "https://example.com/first"
                told = httpx.get(f"{redirect.url}/metrics", headers=scraper, timeout=PATIENCE).text
                assert "refract_clicks_kept_total 3.0" in told, (
                    "the redirect node answers for links and for lists"
                )
                assert (
                    "refract_clicks_kept_total 0.0"
                    in httpx.get(f"{web.url}/metrics", headers=scraper, timeout=PATIENCE).text
                )
                assert [
                    client.get(path).status_code for path in ("/metrics", "/ready", "/METRICS")
                ] == [404] * 3
                assert client.get("/health").status_code == 200
        finally:
            front.terminate()
            front.wait(PATIENCE)


async def _published(session: WriteSession, rt: Runtime, owner: User) -> None:
    who = ListMaker(owner.id)
    made = await make.list_of(session, rt, who, "https://example.com/first", title="What we read")
    await lists.set_draft_slug(session, make.space(rt), who, made.id, "reading")
    await lists.publish_list(session, make.space(rt), who, made.id)


def _front(
    home: Path, nginx: str, ports: dict[str, int], port: int, secure: int
) -> "subprocess.Popen[bytes]":
    place = home / "nginx"
    shutil.copytree(DEPLOY / "nginx", place)
    key = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run(
        [
            *key,
            "-subj",
            "/CN=go.example.com",
            "-keyout",
            place / "privkey.pem",
            "-out",
            place / "fullchain.pem",
        ],
        check=True,
        capture_output=True,
    )
    text = (
        (place / "refract.conf")
        .read_text()
        .replace("/etc/letsencrypt/live/go.example.com", str(place))
    )
    text = text.replace("listen 80;", f"listen 127.0.0.1:{port};").replace(
        "listen 443 ssl;", f"listen 127.0.0.1:{secure} ssl;"
    )
    text = re.sub(r"listen \[::\]:.*;\n", "", text)
    if not _knows_http2(nginx):
        text = re.sub(r"http2 on;.*\n", "", text)
    for old, new in ports.items():
        text = text.replace(f"127.0.0.1:{old} ", f"127.0.0.1:{new} ")
    (place / "refract.conf").write_text(text)
    (place / "nginx.conf").write_text(
        f"daemon off; pid {place}/pid; error_log {place}/error.log; events {{}}\nhttp {{ access_log"
        f" off; client_body_temp_path {place}/b; proxy_temp_path {place}/p; fastcgi_temp_path"
        f" {place}/f;\nuwsgi_temp_path {place}/u; scgi_temp_path {place}/s; include refract.conf;"
        " }\n"
    )
    tried = subprocess.run(
        [nginx, "-p", place, "-c", place / "nginx.conf", "-t"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.returncode == 0, tried.stderr
    return subprocess.Popen([nginx, "-p", place, "-c", place / "nginx.conf"])


def _knows_http2(nginx: str) -> bool:
    told = subprocess.run([nginx, "-v"], capture_output=True, text=True, check=True).stderr
    return tuple(map(int, re.findall(r"\d+", told)[:3])) >= (1, 25, 1)


def _wait(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            httpx.get(f"http://127.0.0.1:{port}/", trust_env=False, timeout=PATIENCE)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("nginx does not answer")


def test_the_container_copies_what_there_is() -> None:
    told = (DEPLOY / "Containerfile").read_text()
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.*)$", told, re.MULTILINE)
        for word in line.split()[:-1]
    ]

    assert "src" in copied
    assert [name for name in copied if not (DEPLOY.parent / name).exists()] == []
