"""`refract serve` as a person meets it: starts, stops, starts again with the same data."""

import os
import re
import resource
import signal
from pathlib import Path

import httpx
import psutil

from tests.redirect.outside import Outside
from tests.serving import refract, serving
from tests.waiting import PATIENCE, eventually_blocking


def test_it_answers_stops_on_ctrl_c_and_starts_again_with_the_same_data(tmp_path: Path) -> None:
    with serving(tmp_path / "data", REFRACT_BACKGROUND="process") as server:
        assert (
            "text/html"
            in httpx.get(
                f"{server.url}/", headers={"accept": "text/html"}, timeout=PATIENCE
            ).headers["content-type"]
        )
        assert httpx.get(f"{server.url}/ready", timeout=PATIENCE).json()["status"] == "ready"
        first = server.signin_link
        key = refract(
            "keys", "create", "--name", "first", "--data-dir", str(tmp_path / "data")
        ).stdout.strip()
        me = httpx.get(
            f"{server.url}/api/v1/me", headers={"x-api-key": key}, timeout=PATIENCE
        ).json()["id"]
        server.signal(signal.SIGINT)
        assert server.wait() == 0
        assert "Traceback" not in server.output

    with serving(tmp_path / "data", port=server.port, REFRACT_BACKGROUND="process") as again:
        assert again.output.count("Sign in (one-time link):") == 1  # only the first start offers it
        assert (
            httpx.get(
                f"{again.url}/api/v1/me", headers={"x-api-key": key}, timeout=PATIENCE
            ).json()["id"]
            == me
        )
        assert (
            httpx.get(first, headers={"accept": "text/html"}, timeout=PATIENCE).status_code == 200
        )


def test_data_and_database_are_private(tmp_path: Path) -> None:
    with serving(tmp_path / "data", REFRACT_BACKGROUND="process"):
        modes = {
            path.name: path.stat().st_mode & 0o077
            for path in [tmp_path / "data", *(tmp_path / "data").rglob("*")]
        }

    assert "refract.db" in modes
    assert set(modes.values()) == {0}


def test_the_key_command_prints_the_key_and_only_that(tmp_path: Path) -> None:
    assert refract("migrate", "--data-dir", str(tmp_path / "data")).returncode == 0
    made = refract(
        "keys", "create", "--name", "n", "--scope", "read", "--data-dir", str(tmp_path / "data")
    )

    assert made.returncode == 0
    assert made.stdout.startswith("refract_")
    assert made.stdout.count("\n") == 1
    assert made.stderr == ""


def test_several_processes_are_replaced_one_by_one_and_a_dead_one_is_followed(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "data", "--workers", "2", REFRACT_BACKGROUND="process") as server:
        eventually_blocking(lambda: len(server.children) == 2)
        before = set(server.children)
        server.signal(signal.SIGHUP)
        eventually_blocking(lambda: len(server.children) == 2 and not before & set(server.children))

        victim = server.children[0]
        os.kill(victim, signal.SIGKILL)
        eventually_blocking(lambda: len(server.children) == 2 and victim not in server.children)
        assert httpx.get(f"{server.url}/health", timeout=PATIENCE).status_code == 200


def test_every_process_may_open_as_many_files_as_the_system_allows(tmp_path: Path) -> None:
    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, most))
    try:
        with serving(tmp_path / "data", REFRACT_BACKGROUND="process") as server:
            eventually_blocking(lambda: len(server.children) == 1)
            limits = {
                psutil.Process(pid).rlimit(psutil.RLIMIT_NOFILE)[0]
                for pid in (server.process.pid, *server.children)
            }
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (usual, most))
    assert limits == {65_536 if most == resource.RLIM_INFINITY else min(most, 65_536)}


def test_no_process_outlives_its_parent(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--workers", "2", REFRACT_BACKGROUND="process") as server:
        eventually_blocking(lambda: len(server.children) == 2)
        children = [psutil.Process(pid) for pid in server.children]
        server.signal(signal.SIGKILL)
        eventually_blocking(
            lambda: (
                not any(
                    child.is_running() and child.status() != psutil.STATUS_ZOMBIE
                    for child in children
                )
            )
        )


def test_several_processes_are_measured_together(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--workers", "2", REFRACT_BACKGROUND="process") as server:

        def metrics() -> str:
            return httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text

        def storing() -> list[str]:
            """Return the processes that store clicks; each tells it once its ingester runs."""
            return re.findall(r'refract_clicks_stored_total\{process="(\w+)"\}', metrics())

        eventually_blocking(lambda: storing() == ["0", "1"], explain=lambda: metrics()[:2000])
        text = metrics()

    assert "refract_processes 3" in text
    for number in (0, 1):
        assert f'refract_clicks_kept_total{{process="{number}"}} 0.0' in text
    for process in ("0", "1", "redirect"):
        assert f'refract_loop_longest_seconds{{process="{process}"}}' in text


def test_a_serving_process_is_followed_and_no_click_is_lost(tmp_path: Path) -> None:
    data = tmp_path / "data"
    outside = Outside(data)
    with (
        serving(data, REFRACT_BACKGROUND="process") as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE) as client,
    ):
        link = outside.link(name="n")
        assert client.get("/n").status_code == 302
        eventually_blocking(lambda: outside.clicks(link.id) == 1)
        redirecting, (victim,) = server.redirecting, server.children
        os.kill(victim, signal.SIGKILL)
        assert client.get("/n").status_code == 302
        eventually_blocking(lambda: outside.clicks(link.id) == 2)
        assert server.children not in ([], [victim])
        assert server.redirecting == redirecting


def test_the_redirecting_process_is_followed_and_its_clicks_are_stored(tmp_path: Path) -> None:
    data = tmp_path / "data"
    outside = Outside(data)
    with serving(data, REFRACT_BACKGROUND="process") as server:
        link = outside.link(name="n")
        assert httpx.get(f"{server.url}/n", timeout=PATIENCE).status_code == 302
        (serving_process,), victim = server.children, server.redirecting
        assert victim is not None
        os.kill(victim, signal.SIGKILL)
        eventually_blocking(lambda: server.redirecting not in (None, victim))
        assert httpx.get(f"{server.url}/n", timeout=PATIENCE).status_code == 302
        eventually_blocking(lambda: outside.clicks(link.id) == 2)
        assert server.children == [serving_process]


def test_inline_one_process_does_everything(tmp_path: Path) -> None:
    data = tmp_path / "data"
    outside = Outside(data)
    with serving(data, REFRACT_BACKGROUND="inline") as server:
        link = outside.link(name="n")
        assert httpx.get(f"{server.url}/n", timeout=PATIENCE).status_code == 302
        eventually_blocking(lambda: outside.clicks(link.id) == 1)
        assert (server.children, server.redirecting) == ([], None)
