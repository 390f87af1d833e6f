"""`refract restore` on an installation that was used after the backup."""

import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.serving import refract


def test_what_was_revoked_while_no_worker_ran_stays_revoked(run: Run, tmp_path: Path) -> None:
    """Workers write the list; the database is read once more before it is emptied."""
    run("keys", "create", "--name", "old")
    run("keys", "create", "--name", "kept")
    file = tmp_path / "b.zip"
    assert run("backup", file).code == 0
    listed = run("keys", "list", "--json").out
    assert run("keys", "revoke", _id_of(listed, "old")).code == 0

    done = run("restore", file, "--again")

    assert done.code == 0, done
    assert (
        "Since then: 1 key revoked, 0 people suspended, 0 accounts deleted, 0 people barred, 0"
        " administrators demoted, 0 team managers demoted and 0 team members removed again."
        in done.out
    )
    statuses = {key["name"]: key["status"] for key in json.loads(run("keys", "list", "--json").out)}
    assert statuses == {"old": "revoked", "kept": "active"}


def test_a_backup_replaces_a_file_only_by_force(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "b.zip"
    file.write_text("the only copy")

    refused = run("backup", file)
    kept = file.read_text()
    forced = run("backup", file, "--force")

    assert (refused.code, kept) == (1, "the only copy")
    assert f"{file} already exists. Choose another name, or replace it with --force." in refused.err
    assert forced.code == 0, forced
    assert run("restore", file, "--check").code == 0


def test_a_list_that_is_not_there_is_said_before_anything_is_written(
    run: Run, data: Path, tmp_path: Path
) -> None:
    file, elsewhere = tmp_path / "b.zip", tmp_path / "elsewhere"
    assert run("backup", file).code == 0

    done = run("restore", file, "--replay", tmp_path / "absent.jsonl", into=elsewhere)

    assert (done.code, done.out) == (2, "")
    assert "absent.jsonl doesn't exist." in done.err
    assert not elsewhere.exists()


def test_files_are_private_in_a_directory_that_others_may_read(run: Run, tmp_path: Path) -> None:
    """Finding: whatever `serve` had not created could be read by everybody on the machine."""
    file, elsewhere = tmp_path / "b.zip", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    assert run("backup", file).code == 0
    assert run("restore", file, into=elsewhere).code == 0
    assert run("keys", "create", "--name", "new", into=elsewhere).code == 0

    modes = {path.name: path.stat().st_mode & 0o077 for path in [file, *elsewhere.rglob("*")]}

    assert modes["refract.db"] == 0
    assert set(modes.values()) == {0}


def test_a_restore_that_was_cut_off_is_not_served_and_is_done_again(
    run: Run, data: Path, tmp_path: Path
) -> None:
    """Killed half-way, it left a database that served what it had, with nothing revoked again."""
    run("keys", "create", "--name", "old")
    file, elsewhere = tmp_path / "b.zip", tmp_path / "elsewhere"
    assert run("backup", file).code == 0
    elsewhere.mkdir(mode=0o700)
    (
        elsewhere / "archive"
    ).touch()  # where the list of revocations cannot be written, after all tables are
    assert run("restore", file, into=elsewhere).code == 1

    for words in (
        ("keys", "list"),
        ("migrate",),
        ("backup", tmp_path / "c.zip"),
        ("doctor",),
    ):
        refused = run(*words, into=elsewhere)
        assert refused.code != 0, words
        assert "restore" in refused.out + refused.err, words

    served = refract("serve", "--port", "0", "--data-dir", str(elsewhere))
    assert (served.returncode, "restore" in served.stderr) == (2, True)
    (elsewhere / "archive").unlink()
    assert run("restore", file, into=elsewhere).code == 0
    assert "old" in run("keys", "list", into=elsewhere).out


def _id_of(listed: str, name: str) -> str:
    return next(str(key["id"]) for key in json.loads(listed) if key["name"] == name)
