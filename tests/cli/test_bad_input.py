"""Errors of commands: one sentence on standard error, an exit code, never a traceback."""

import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.services_plugin import ABSENT
from tools.serving import command, environment

NOBODY = 65_534
SERVE = ("serve", "--port", "0")


def _run(
    *words: str,
    data_dir: Path | None = None,
    prefix: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """A command as a person would run it; it must end by itself."""
    where = ["--data-dir", str(data_dir)] if data_dir else []
    given = environment(**(settings or {}))
    if not prefix:
        return run_command(*words, *where, environment=given, timeout=60)
    return subprocess.run(
        [*prefix, *command(*words), *where],
        env=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _one_sentence(done: "subprocess.CompletedProcess[str]", *parts: str, code: int = 2) -> None:
    told = done.stderr.strip()
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == "", done.stdout
    assert len(told.splitlines()) == 1, told
    assert told.endswith("."), told
    for part in parts:
        assert part in told, told


@pytest.mark.parametrize(
    ("setting", "value", "parts"),
    [
        ("port", "lots", ["REFRACT_PORT", '"lots"']),
        ("port", "70000", ["REFRACT_PORT", '"70000"']),
        ("workers", "0", ["REFRACT_WORKERS"]),
        ("role", "queen", ["REFRACT_ROLE", "'all', 'web', 'redirect', 'worker' or 'ingest'"]),
        ("base_url", "go.example.com/path", ["REFRACT_BASE_URL", "https://go.example.com"]),
        ("base_url", "https://[::1", ["REFRACT_BASE_URL"]),
        ("base_url", "https://go.example.com:port", ["REFRACT_BASE_URL"]),
        ("trusted_proxies", "10.0.0.0/99", ["REFRACT_TRUSTED_PROXIES", "10.0.0.0/8"]),
        ("trusted_proxies", "10.0.0.1/8", ["REFRACT_TRUSTED_PROXIES", "10.0.0.0/8"]),
        ("secret_key", "short", ["REFRACT_SECRET_KEY", "32 characters"]),
        ("database_url", "oracle://db/x", ["REFRACT_DATABASE_URL", "sqlite://"]),
        ("database_url", "not a url", ["REFRACT_DATABASE_URL"]),
        ("database_url", "postgresql://user@host:port/x", ["REFRACT_DATABASE_URL"]),
        ("database_url", "sqlite://", ["REFRACT_DATABASE_URL"]),
        ("database_url", "sqlite:///:memory:", ["REFRACT_DATABASE_URL"]),
        ("redis_url", "http://redis", ["REFRACT_REDIS_URL", "redis://"]),
        ("dead_link_status", "418", ["REFRACT_DEAD_LINK_STATUS"]),
        ("log_level", "loud", ["REFRACT_LOG_LEVEL"]),
    ],
)
def test_a_setting_that_does_not_fit_is_named_with_what_would(
    tmp_path: Path, setting: str, value: str, parts: list[str]
) -> None:
    words = ("serve",) if setting == "port" else SERVE
    done = _run(*words, data_dir=tmp_path / "data", settings={setting: value})

    _one_sentence(done, *parts)


def test_a_secret_is_not_repeated_in_the_sentence_about_it(tmp_path: Path) -> None:
    key = _run(*SERVE, data_dir=tmp_path / "data", settings={"secret_key": "hunter2"})
    url = _run(
        *SERVE, data_dir=tmp_path / "data", settings={"database_url": "oracle://me:hunter2@db/x"}
    )

    assert "hunter2" not in key.stderr + url.stderr


@pytest.mark.parametrize("words", [SERVE, ("keys", "create", "--name", "x")])
def test_a_data_directory_that_is_a_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "data").write_text("not a directory")

    _one_sentence(_run(*words, data_dir=tmp_path / "data"), "is a file", "--data-dir")
    _one_sentence(_run(*words, data_dir=tmp_path / "data" / "below"), "--data-dir")


def _closed_directory(path: Path) -> None:
    path.mkdir(mode=0o000)


def _read_only_directory(path: Path) -> None:
    path.mkdir(mode=0o555)


def _closed_parent(path: Path) -> None:
    path.parent.chmod(0o555)


def _get_user_prefix() -> tuple[str, ...]:
    """Return what makes root an ordinary user: nothing is closed to root."""
    if os.geteuid() != 0:
        return ()
    if not shutil.which("setpriv"):
        pytest.skip(f"{ABSENT}setpriv")
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user may reach; pytest's own is private."""
    made = Path(tempfile.mkdtemp(prefix="refract-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    for directory in (made, made / "data"):
        if directory.exists():
            directory.chmod(0o700)
    shutil.rmtree(made)


@pytest.mark.parametrize("prepare", [_closed_directory, _read_only_directory, _closed_parent])
def test_a_data_directory_that_may_not_be_used(
    place: Path, prepare: Callable[[Path], None]
) -> None:
    prepare(place / "data")

    _one_sentence(
        _run(*SERVE, data_dir=place / "data", prefix=_get_user_prefix()),
        str(place / "data"),
        "--data-dir",
    )


@pytest.mark.parametrize("closed", ["refract.db", "secret"])
def test_a_file_in_the_data_directory_that_may_not_be_read(place: Path, closed: str) -> None:
    prefix = _get_user_prefix()
    place.chmod(0o700)
    if prefix:
        os.chown(place, NOBODY, NOBODY)
    (place / closed).touch(mode=0o000)

    # In one process: the interpreter of the tests may belong to root, too.
    inline = {"background": "inline"}
    done = _run(*SERVE, data_dir=place, prefix=prefix, settings=inline)

    _one_sentence(done, str(place / closed), code=done.returncode or 2)


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("postgresql", SERVE),
        ("mysql", SERVE),
        ("postgresql", ("keys", "create", "--name", "x")),
        ("mysql", ("migrate",)),
    ],
)
def test_a_database_that_is_down(tmp_path: Path, scheme: str, words: tuple[str, ...]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"{scheme}://me:hunter2@127.0.0.1:{free.getsockname()[1]}/refract"
        (tmp_path / "data").mkdir(mode=0o700)
        done = _run(*words, data_dir=tmp_path / "data", settings={"database_url": url})

    _one_sentence(done, "can't be reached", "127.0.0.1", code=1)
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_database_that_refuses_us(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    server: str = request.getfixturevalue(f"{kind}_url")
    url = f"{server.rsplit('/', 1)[0]}/no_such_database_here"

    done = _run(*SERVE, data_dir=tmp_path / "data", settings={"database_url": url})

    _one_sentence(done, "no_such_database_here", code=done.returncode or 1)


def test_a_database_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "refract.db").write_text(
        "This is a shopping list, and a rather long one at that. " * 100
    )

    done = _run(*SERVE, data_dir=tmp_path)

    _one_sentence(done, str(tmp_path / "refract.db"), code=done.returncode or 1)


def test_a_database_from_a_later_version_that_needs_it(data: Path) -> None:
    with sqlite3.connect(data / "refract.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.execute(
            "INSERT INTO schema_requirements (revision, version) VALUES ('9998', '7.0.0')"
        )
    database.close()

    for words in (
        SERVE,
        ("migrate",),
        ("keys", "create", "--name", "x"),
        ("backup", str(data / "file.zip")),
    ):
        _one_sentence(
            _run(*words, data_dir=data),
            "upgraded by a newer Refract",
            "9999",
            "7.0.0",
            "refract migrate --to",
        )


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        _one_sentence(_run("serve", "--port", port, data_dir=tmp_path / "data"), port, "--port")


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7"])
def test_an_address_that_is_not_ours(tmp_path: Path, host: str) -> None:
    _one_sentence(_run(*SERVE, "--host", host, data_dir=tmp_path / "data"), "--host")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("keys", "create", "--name", ""), ["name"]),
        (("keys", "create", "--name", "x" * 101), ["name", "100"]),
        (("keys", "create", "--name", "x", "--user", "nobody@example.com"), ["nobody@example.com"]),
        (("keys", "revoke", "refract_nothing"), ["API key not found"]),
        (("signin-link", "--user", "nobody@example.com"), ["nobody@example.com"]),
    ],
)
def test_a_wish_that_cannot_be_met(data: Path, words: tuple[str, ...], parts: list[str]) -> None:
    done = _run(*words, data_dir=data)

    _one_sentence(done, *parts, code=done.returncode or 1)


@pytest.mark.parametrize(
    "words",
    [
        ("fly",),
        ("serve", "--fly"),
        ("keys", "create"),
        ("keys", "create", "--name", "x", "--scope", "fly"),
    ],
)
def test_a_command_that_is_not_known_is_explained(words: tuple[str, ...]) -> None:
    done = _run(*words)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "Error" in done.stderr
