"""The reverse proxies of docs/how-to/domains.md, run as they are written there.

The page's own Caddyfile and nginx configuration stand in front of a real server, on other ports and
with certificates that are made on this machine.
"""

import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests import make
from tests.redirect.outside import Outside
from tests.services_plugin import address_of
from tests.serving import Served, refract, serving
from tests.waiting import PATIENCE, eventually_blocking
from tools.servers import free_port

HOW_TO = (Path(__file__).parents[2] / "docs/how-to/domains.md").read_text()
DEFAULT, ACTIVE, DISABLED, UNKNOWN = "go.example.com", "sho.rt", "off.example", "unknown.example"


def read_example(language: str) -> str:
    """Return the one example of the page in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", HOW_TO, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with one name on two domains, and a disabled domain."""
    data = tmp_path_factory.mktemp("domains") / "data"
    assert refract("migrate", "--data-dir", str(data)).returncode == 0
    outside = Outside(data, base_url=f"https://{DEFAULT}")
    for host in (ACTIVE, DISABLED):
        outside.write(partial(make.domain, host=host))
    outside.link("https://example.com/default", name="spring")
    outside.link("https://example.com/campaign", name="spring", domain=ACTIVE)
    outside.write(partial(make.disable_domain, host=DISABLED))
    settings: dict[str, Any] = {
        "REFRACT_BASE_URL": f"https://{DEFAULT}",
        "REFRACT_TRUSTED_PROXIES": "127.0.0.1/32",
    }
    with serving(data, **settings) as served:
        yield served


@contextmanager
def running(command: list[str], home: Path, port: int) -> Iterator[None]:
    """Run a reverse proxy until it listens, and end it afterwards."""
    log = home / "front.log"
    environment = {"HOME": str(home), "XDG_DATA_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    with log.open("ab") as sink:
        front = subprocess.Popen(command, stdout=sink, stderr=sink, env=environment, cwd=home)
    try:
        eventually_blocking(lambda: listens(port) or front.poll() is not None)
        assert front.poll() is None, log.read_text()
        yield
    finally:
        front.terminate()
        front.wait(PATIENCE)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def follow(port: int, host: str, path: str = "/spring") -> tuple[int, str]:
    """Return status and destination of a name, by a TLS connection that asks for this host.

    Raises `ssl.SSLError` if the handshake is refused.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # our own certificates
    with (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        asked = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        secure.sendall(asked.encode())
        answer = b""
        while piece := secure.recv(65_536):
            answer += piece
    head = answer.partition(b"\r\n\r\n")[0].decode("latin-1")
    found = re.search(r"^location: (.*)$", head, re.MULTILINE | re.IGNORECASE)
    return int(head.split(" ", 2)[1]), found[1].strip() if found else ""


@pytest.fixture(scope="module")
def caddy(node: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Caddy with the page's file, and certificates by an authority of its own."""
    program, home, port = address_of("caddy"), tmp_path_factory.mktemp("caddy"), free_port()
    example = read_example("caddyfile").replace("127.0.0.1:8000", f"127.0.0.1:{node.port}")
    local = (
        "admin off\nlocal_certs\nskip_install_trust\nauto_https disable_redirects\n"
        f"storage file_system {home}/store\nhttp_port {free_port()}\nhttps_port {port}\n"
    )
    (home / "Caddyfile").write_text(example.replace("{\n", "{\n" + local, 1))
    with running([program, "run", "--config", str(home / "Caddyfile")], home, port):
        yield port


@pytest.fixture(scope="module")
def nginx(node: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """nginx with the page's server blocks and a certificate for both domains."""
    program, home, port = address_of("nginx"), tmp_path_factory.mktemp("nginx"), free_port()
    make_certificate(home)
    servers = (
        read_example("nginx")
        .replace("/etc/letsencrypt/live/refract", str(home))
        .replace("listen 443", f"listen 127.0.0.1:{port}")
        .replace("127.0.0.1:8000", f"127.0.0.1:{node.port}")
    )
    folders = "".join(
        f"{name}_temp_path {home}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (home / "nginx.conf").write_text(
        f"daemon off;\npid {home}/pid;\nerror_log {home}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{folders}{servers}}}\n"
    )
    with running([program, "-p", str(home), "-c", str(home / "nginx.conf")], home, port):
        yield port


def make_certificate(home: Path) -> None:
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={DEFAULT}", "-addext", f"subjectAltName=DNS:{DEFAULT},DNS:{ACTIVE}"]
    files = ["-keyout", str(home / "privkey.pem"), "-out", str(home / "fullchain.pem")]
    subprocess.run(
        ["openssl", "req", "-x509", *curve, *names, *files], check=True, capture_output=True
    )


@pytest.fixture(params=["caddy", "nginx"])
def front(request: pytest.FixtureRequest) -> int:
    port: int = request.getfixturevalue(request.param)
    return port


def test_each_domain_has_its_certificate_and_its_names(front: int) -> None:
    assert follow(front, DEFAULT) == (302, "https://example.com/default")
    assert follow(front, ACTIVE) == (302, "https://example.com/campaign")


@pytest.mark.parametrize("host", [DISABLED, UNKNOWN])
def test_other_hosts_get_no_handshake(front: int, host: str) -> None:
    with pytest.raises(ssl.SSLError):
        follow(front, host)


def test_the_question_of_caddy_is_not_answered_through_it(caddy: int) -> None:
    asked = f"/api/v1/domains/tls?domain={ACTIVE}"

    assert follow(caddy, DEFAULT, asked) == (404, "")


def test_the_rule_of_traefik_names_the_domains() -> None:
    routed = yaml.safe_load(read_example("yaml"))["http"]

    (router,) = routed["routers"].values()
    assert re.findall(r"Host\(`([^`]+)`\)", router["rule"]) == [DEFAULT, ACTIVE]
    (service,) = routed["services"].values()
    assert router["service"] in routed["services"]
    assert service["loadBalancer"]["servers"] == [{"url": "http://127.0.0.1:8000"}]
    assert service["loadBalancer"].get("passHostHeader", True)
