"""Commands and the installation they work on.

Regressions: in the wrong directory a command silently created a second installation; its URLs had
port 8000 whatever the server's; an existing data directory stayed readable by others; any command
migrated an older schema.
"""

import errno
import json
import os
import signal
import socket
import sqlite3
from pathlib import Path

import pytest

from refract import migrations
from tests.cli.conftest import Run
from tests.serving import refract, serving
from tests.waiting import eventually_blocking

COMMANDS = [
    ("shorten", "https://example.com"),
    ("signin-link",),
    ("keys", "create", "--name", "n"),
    ("keys", "list"),
    ("verify",),
    ("links", "list"),
    ("admin", "list"),
    ("stats", "x"),
    ("save", "a thought"),
    ("backup", "file.zip"),
    ("migrate", "--status"),
    ("migrate", "--check"),
    ("migrate", "--to", "0001"),
    ("library", "list"),
    ("export", "links"),
    ("move", "--to", "postgresql://u@127.0.0.1:1/d"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_makes_an_installation_by_accident(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    elsewhere = tmp_path / "elsewhere"

    done = run(*words, into=elsewhere)

    assert done.code == 2, done
    for part in (str(elsewhere), "no installation", "--data-dir", "REFRACT_DATA_DIR", "--env-file"):
        assert part in done.err
    assert not elsewhere.exists()


def test_doctor_does_not_call_an_empty_place_well(run: Run, tmp_path: Path) -> None:
    """As a check of a service whose environment it was not given, it passed."""
    elsewhere = tmp_path / "elsewhere"

    done = run("doctor", into=elsewhere)

    assert done.code == 1
    for part in (str(elsewhere), "no installation", "--data-dir", "REFRACT_DATA_DIR", "--env-file"):
        assert part in done.out
    assert not elsewhere.exists()
    assert " warn secret There's no secret key yet." in done.out
    assert f" warn data directory {elsewhere} doesn't exist yet." in done.out
    assert "All processes share the secret key" not in done.out


def test_commands_and_doctor_explain_a_missing_installation_alike(run: Run, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    message = f"There's no installation in the data directory {elsewhere}: there's no database"

    assert message in run("keys", "list", into=elsewhere).err
    assert message in run("doctor", into=elsewhere).out


def test_an_empty_database_is_no_installation(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir(mode=0o700)
    sqlite3.connect(tmp_path / "empty" / "refract.db").close()
    (tmp_path / "empty" / "refract.db").touch()

    done = run("links", "list", into=tmp_path / "empty")

    assert (done.code, "it is empty" in done.err) == (2, True)


@pytest.mark.parametrize(
    "words", [("links", "list"), ("verify",), ("shorten", "https://example.com")], ids=" ".join
)
def test_a_command_does_not_migrate(run: Run, data: Path, words: tuple[str, ...]) -> None:
    assert run("migrate", "--to", "0019", "--yes").code == 0

    done = run(*words)

    assert (done.code, "run refract migrate" in done.err.lower()) == (2, True), done
    assert "at revision 0019" in run("migrate", "--status").out


def test_status_and_check(run: Run) -> None:
    before = migrations.list_revisions()[-2]
    assert (
        run("migrate", "--check").code,
        f"at revision {migrations.HEAD}" in run("migrate", "--status").out,
    ) == (0, True)
    assert run("migrate", "--to", before, "--yes").code == 0

    checked = run("migrate", "--check")

    assert (
        checked.code,
        f"at revision {before}" in checked.out,
        f"Pending: {migrations.HEAD}." in checked.out,
    ) == (1, True, True)
    assert (
        run("migrate").out.strip()
        == f"Ran 1 migration. The schema is at revision {migrations.HEAD}."
    )


def test_going_back_names_what_is_lost_and_asks(run: Run, data: Path) -> None:
    with sqlite3.connect(data / "refract.db") as database:
        database.execute(
            "INSERT INTO schema_requirements (revision, version) VALUES ('0001', '0.0.1')"
        )
        (rows,) = database.execute("SELECT count(*) FROM schema_requirements").fetchone()
    database.close()

    asked = run("migrate", "--to", "0018")
    assert (
        asked.code,
        f"table schema_requirements ({rows} rows)" in asked.out,
        "column click_rollups.tops (0 values)" in asked.out,
    ) == (
        1,
        True,
        True,
    )
    assert f"at revision {migrations.HEAD}" in run("migrate", "--status").out
    assert run("migrate", "--to", "0018", "--yes").code == 0
    assert "no revision" in run("migrate", "--to", "7777").err
    assert "The schema is at revision 0019" in run("migrate", "--to", "0019").out


def test_a_newer_schema_that_only_has_more_in_it_is_no_obstacle(run: Run, data: Path) -> None:
    with sqlite3.connect(data / "refract.db") as database:
        database.execute("ALTER TABLE links ADD COLUMN note_of_tomorrow TEXT")
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()

    assert run("shorten", "https://example.com", "--name", "x").code == 0
    assert run("links", "list").code == run("migrate").code == run("migrate", "--check").code == 0
    assert "9999" in run("migrate").out
    back = run("migrate", "--to", "0019", "--yes")
    assert (back.code, "Downgrade it with the newer version" in back.err) == (2, True)
    backup = run("backup", data / "file.zip")
    assert (
        backup.code,
        "upgraded by a newer Refract" in backup.err,
        "with the newer version" in backup.err,
    ) == (2, True, True)


def test_an_environment_file_says_where_the_installation_is(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "refract.env"
    file.write_text(f"REFRACT_DATA_DIR={data}\nREFRACT_BASE_URL=https://go.example.com\n")
    monkeypatch.chdir(tmp_path)

    told = refract("--env-file", str(file), "shorten", "https://example.com", "--name", "by-option")
    also = refract(
        "shorten", "https://example.com", "--name", "by-variable", REFRACT_ENV_FILE=str(file)
    )

    assert (told.stdout, also.stdout) == (
        "https://go.example.com/by-option\n",
        "https://go.example.com/by-variable\n",
    )


def test_files_are_private_and_so_is_the_directory_from_now_on(run: Run, data: Path) -> None:
    data.chmod(0o755)

    assert run("keys", "create", "--name", "n").code == 0

    assert data.stat().st_mode & 0o077 == 0
    assert (data / "secret").stat().st_mode & 0o077 == 0


def test_commands_know_the_address_of_the_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data, REFRACT_LOG_FORMAT="json") as server:
        link = refract("signin-link", "--data-dir", str(data)).stdout
        short = refract(
            "shorten", "https://example.com", "--name", "x", "--data-dir", str(data)
        ).stdout
        lines = [json.loads(line) for line in server.output.splitlines()]  # nothing else is said
    assert link.startswith(f"{server.url}/auth/sign-in/")
    assert short.strip() == f"{server.url}/x"
    began = next(line for line in lines if line["event"] == "server_starting")
    assert (began["role"], began["port"], began["schema"]) == ("all", server.port, migrations.HEAD)

    with serving(
        data,
        REFRACT_ISSUERS__WORK__URL="https://id.test",
        REFRACT_ISSUERS__WORK__CLIENT_ID="refract",
    ):
        refused = refract("signin-link", "--data-dir", str(data))
    assert (refused.returncode, "disabled" in refused.stderr) == (1, True)


def test_whoever_listens_everywhere_hears_of_the_base_url(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--host", "0.0.0.0") as server:  # noqa: S104 - a test
        server.signal(signal.SIGTERM)
        eventually_blocking(lambda: "REFRACT_BASE_URL" in server.output)
        assert f"Short URLs will say http://127.0.0.1:{server.port}" in server.output


def test_a_port_that_needs_a_right_is_explained(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """For port 80 "stop what uses it" was the advice for port 80."""

    class ForbiddenPorts(socket.socket):
        def bind(self, _address: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(socket, "socket", ForbiddenPorts)

    done = run("serve", "--port", "80")

    assert (done.code, "Ports below 1024" in done.err, "Stop what uses it" in done.err) == (
        2,
        True,
        False,
    )


def test_settings_are_shown_with_their_source_and_without_secrets(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("canary" * 10)
    (tmp_path / "refract.toml").write_text("port = 81\n")
    monkeypatch.setenv("REFRACT_SECRET_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("REFRACT_DATABASE_URL", "postgres://me:canary@db/refract")
    monkeypatch.setenv("REFRACT_SETTINGS_FILE", str(tmp_path / "refract.toml"))

    shown = {row["variable"]: row for row in json.loads(run("settings", "--json").out)}
    text = run("settings", "--changed").out

    assert shown["REFRACT_SECRET_KEY"] == {
        "variable": "REFRACT_SECRET_KEY",
        "value": "[hidden]",
        "source": "REFRACT_SECRET_KEY_FILE",
    }
    assert shown["REFRACT_DATABASE_URL"]["value"] == "postgresql://me:***@db/refract"
    assert (shown["REFRACT_PORT"]["value"], shown["REFRACT_PORT"]["source"]) == (
        81,
        "REFRACT_SETTINGS_FILE",
    )
    assert shown["REFRACT_WORKERS"]["source"] == "default"
    assert "REFRACT_WORKERS" not in text
    assert "canary" not in text + json.dumps(shown)


def test_a_lifted_limit_is_shown_as_it_is_written(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding: it was shown as an empty value, which is refused when it is copied back."""
    monkeypatch.setenv("REFRACT_CREATES_PER_HOUR", "unlimited")

    shown = {row["variable"]: row["value"] for row in json.loads(run("settings", "--json").out)}

    assert (shown["REFRACT_CREATES_PER_HOUR"], shown["REFRACT_REDIS_URL"]) == ("unlimited", None)
    assert "REFRACT_CREATES_PER_HOUR = unlimited  #" in run("settings", "--changed").out
