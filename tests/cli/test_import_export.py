"""`refract export links` and `refract import links`."""

import asyncio
import csv
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from refract.cli.file_import import _finish_batch
from refract.links.export import COLUMNS
from refract.links.imports import LinkImportOutcome, LinkImportResult
from refract.records.reader import UnreadableRow
from tests.cli.conftest import Run
from tests.serving import ROOT, refract
from tests.waiting import PATIENCE, eventually_blocking

SAMPLES = Path(__file__).parents[1] / "samples" / "imports"
REFUSED_ROWS = {"golink_export.jsonl": 1}
"""Rows of a sample that can't come in: a template with the name of whoever follows the link."""


def many(path: Path, count: int) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["names", "destination", "title", "tags"])
        rows.writerows(
            [f"n{number}", f"https://example.com/{number}", f"Page {number}", f"t{number % 7}"]
            for number in range(count)
        )
    return path


def links_in(data: Path) -> int:
    """Return the number of links, read from the file while it may be written."""
    if not (data / "refract.db").exists():
        return 0
    connection = sqlite3.connect(f"file:{data / 'refract.db'}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM links").fetchone()[0])
    except sqlite3.OperationalError:
        return 0  # not migrated yet
    finally:
        connection.close()


@pytest.fixture
def furnished(run: Run) -> None:
    """Links of every kind."""
    for line in (
        [
            "shorten",
            "https://example.com/ü",
            "--name",
            "plan",
            "--name",
            "Plan_B",
            "--title",
            "=cmd|'/C x'!A0",
            "--notes",
            "'+1\r\n\t@x",
        ],
        [
            "shorten",
            "https://example.com/{id=7}",
            "--tag",
            "B c",
            "--tag",
            "a",
            "--status",
            "301",
            "--visibility",
            "public",
        ],
        ["shorten", "https://example.com/soon", "--expires", "9d"],
        ["shorten", "https://example.com/off", "--name", "off"],
        ["links", "disable", "off"],
        ["shorten", "https://example.com/gone", "--name", "gone"],
        ["links", "delete", "gone"],
    ):
        assert run(*line).code == 0


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_an_export_makes_an_equal_installation(
    run: Run, furnished: None, tmp_path: Path, form: str
) -> None:
    file, other = tmp_path / f"links.{form}", tmp_path / "other"
    wrote = run("export", "links", "--format", form, "--output", file)
    assert (wrote.code, wrote.out) == (0, "")
    assert "4 links" in wrote.err
    assert file.stat().st_mode & 0o077 == 0
    now = run("export", "links", "--format", form)
    assert now.out == file.read_bytes().decode()

    assert run("migrate", into=other).code == 0
    first = run("import", "links", file, into=other)
    again = run("import", "links", file, into=other)

    assert (first.code, first.out) == (
        0,
        "4 rows: 4 created, 0 already here, 0 skipped, 0 refused.\n",
    )
    assert (again.code, again.out) == (
        0,
        "4 rows: 0 created, 4 already here, 0 skipped, 0 refused.\n",
    )
    assert run("export", "links", "--format", form, into=other).out == now.out


def test_no_cell_of_the_table_is_a_formula(run: Run, furnished: None) -> None:
    rows = list(csv.reader(run("export", "links").out.splitlines(keepends=True)))

    assert rows[0] == list(COLUMNS)
    assert len(rows) == 5
    assert not [
        cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    ]


def test_export_of_one_person_and_to_a_place_that_is_none(
    run: Run, furnished: None, tmp_path: Path
) -> None:
    assert run("export", "links", "--user", "OWNER@localhost").out.count("https://") == 4
    assert run("export", "links", "--user", "no@body").code == 1
    nowhere = run("export", "links", "--output", tmp_path / "no" / "file.csv")
    assert nowhere.code == 1
    assert "Can't write" in nowhere.err
    assert not list(tmp_path.glob("**/.*file.csv*"))


def test_whoever_reads_an_export_may_stop_reading(tmp_path: Path, data: Path) -> None:
    assert (
        refract(
            "import", "links", str(many(tmp_path / "m.csv", 3000)), "--data-dir", str(data)
        ).returncode
        == 0
    )
    command = [sys.executable, "-m", "refract", "export", "links", "--data-dir", str(data)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(100)
        process.stdout.close()
        said = process.stderr.read()
        process.wait(PATIENCE)
    assert said == b""


@pytest.mark.parametrize(
    "sample", sorted(path.name for path in SAMPLES.iterdir() if path.is_file())
)
def test_every_sample_comes_in_once(run: Run, sample: str) -> None:
    tried = run("import", "links", SAMPLES / sample, "--dry-run")
    first = run("import", "links", SAMPLES / sample)
    again = run("import", "links", SAMPLES / sample)

    rows = int(first.out.split()[0])
    counted = "1 row" if rows == 1 else f"{rows} rows"
    assert rows > 0
    assert tried.out == f"Dry run, nothing was changed. {first.out}"
    refused = REFUSED_ROWS.get(sample, 0)
    created = rows - refused
    assert (first.code, first.out) == (
        min(refused, 1),
        f"{counted}: {created} created, 0 already here, 0 skipped, {refused} refused.\n",
    )
    assert (again.code, again.out) == (
        min(refused, 1),
        f"{counted}: 0 created, {created} already here, 0 skipped, {refused} refused.\n",
    )


def test_bad_rows_are_told_counted_and_reported(run: Run, tmp_path: Path) -> None:
    lines = [
        b"name,destination,title",
        b"one,https://example.com/1,fine",
        b"two,javascript:alert(1),",
        b"three,https://example.com/3,\xff\xfe",
        b"one,https://example.com/other,",
        b"admin,https://example.com/5,",
        b"=six,https://example.com/6,",
        b"seven,https://example.com/7," + b"x" * 10_000_000,
        b"eight,https://example.com/8,\0",
        b"nine,https://example.com/\x1b[31m,",
        b"ten,https://example.com/10,fine",
    ]
    file, report = tmp_path / "bad.csv", tmp_path / "report.csv"
    file.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n")

    ran = run("import", "links", file, "--report", report)

    assert ran.code == 1
    assert ran.out == "10 rows: 2 created, 0 already here, 1 skipped, 7 refused.\n"
    *told, undo = ran.err.splitlines()
    assert undo.startswith("Undo with: refract import rollback ")
    assert [line.split(": ")[:2] for line in told] == [
        ["line 3", "refused"],
        ["line 4", "refused"],
        ["line 5", "skipped"],
        ["line 6", "refused"],
        ["line 7", "refused"],
        ["line 8", "refused"],
        ["line 9", "refused"],
        ["line 10", "refused"],
    ]
    assert "\x1b" not in ran.err
    assert max(map(len, told)) < 500
    with report.open(newline="", encoding="utf-8") as written:
        rows = list(csv.DictReader(written))
    assert [row["where"] for row in rows] == [line.split(": ")[0] for line in told]
    assert all(row["why"] for row in rows)
    assert not [
        cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))
    ]


def test_many_bad_rows_are_not_all_told(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    file.write_text("destination\n" + "nonsense\n" * 50)

    short, long = run("import", "links", file), run("import", "links", file, "--verbose")

    assert short.err.count("refused") == 20
    assert "30 more" in short.err
    assert long.err.count("refused") == 50


def test_conflicts(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    file.write_text("name,destination\nplan,https://example.com/new\n")
    run("shorten", "https://example.com/old", "--name", "plan")

    skipped = run("import", "links", file)
    failed = run("import", "links", file, "--on-conflict", "fail")
    renamed = run("import", "links", file, "--on-conflict", "rename")

    assert (skipped.code, "1 skipped" in skipped.out) == (0, True)
    assert (failed.code, "1 refused" in failed.out) == (1, True)
    assert (renamed.code, "1 created" in renamed.out) == (0, True)
    assert '"plan" is now "plan-2"' in renamed.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a,b\n1,2\n", "destination"),
        ('{"x": 1', "No links found in this file"),
        ("\x89PNG\r\n", "destination"),
    ],
)
def test_a_file_that_is_none_ends_in_one_sentence(
    run: Run, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "file"
    file.write_text(text)

    ran = run("import", "links", file)

    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert "Can't open" in run("import", "links", tmp_path / "absent").err


def test_columns_that_are_not_read_are_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    file.write_text("destination,tite\nhttps://example.com/,x\n")

    assert "tite" in run("import", "links", file).err


def test_from_standard_input(data: Path) -> None:
    command = [sys.executable, "-m", "refract", "import", "links", "-", "--data-dir", str(data)]
    text = "keyword,url,title\na,https://example.com/a,A\n"
    ran = subprocess.run(
        command,
        input=text,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )

    assert ran.returncode == 0
    assert ran.stdout.startswith("1 row: 1 created")
    assert ran.stderr.startswith("Undo with: refract import rollback ")
    assert len(ran.stderr.splitlines()) == 1


def test_ten_thousand_rows_show_progress_on_a_terminal(tmp_path: Path, data: Path) -> None:
    file = many(tmp_path / "many.csv", 10_000)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "COLUMNS": "100"}
    command = [
        sys.executable,
        "-m",
        "refract",
        "import",
        "links",
        str(file),
        "--data-dir",
        str(data),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, cwd=ROOT, env=environment
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the terminal closes with its last user
                break
            if not piece:
                break
            seen += piece
        assert process.stdout
        said = process.stdout.read()
        process.wait(PATIENCE)
    os.close(ours)

    assert said == b"10,000 rows: 10,000 created, 0 already here, 0 skipped, 0 refused.\n"
    assert process.returncode == 0
    assert b"Importing" in seen
    assert b"1,000 rows" in seen
    assert links_in(data) == 10_000


def test_an_import_that_was_stopped_goes_on_where_it_was(tmp_path: Path, data: Path) -> None:
    file = many(tmp_path / "many.csv", 15_000)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [
        sys.executable,
        "-m",
        "refract",
        "import",
        "links",
        str(file),
        "--data-dir",
        str(data),
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    ) as process:
        eventually_blocking(lambda: links_in(data) >= 1000, pause=0.01)
        process.send_signal(signal.SIGINT)
        said, warned = process.communicate(timeout=PATIENCE)

    kept = links_in(data)
    assert process.returncode == 130
    assert 0 < kept < 15_000
    assert kept % 1000 == 0
    assert "Run the same command again" in warned
    assert "Traceback" not in warned
    assert said.startswith(f"{kept:,} rows: {kept:,} created")

    again = refract("import", "links", str(file), "--data-dir", str(data))

    assert (
        again.stdout
        == f"15,000 rows: {15_000 - kept:,} created, {kept:,} already here, 0 skipped, 0 refused.\n"
    )
    assert links_in(data) == 15_000


async def test_the_batch_at_hand_is_counted_when_somebody_stops_the_import() -> None:
    begun, commits, counted = asyncio.Event(), asyncio.Event(), list[LinkImportResult]()
    result = LinkImportResult(UnreadableRow("line 2", "x"), LinkImportOutcome.REFUSED)

    async def batch() -> list[LinkImportResult]:
        begun.set()
        await commits.wait()
        return [result]

    importing = asyncio.ensure_future(_finish_batch(batch(), counted.extend))
    await begun.wait()
    importing.cancel()
    await asyncio.sleep(0)
    assert not importing.done()
    commits.set()

    with pytest.raises(asyncio.CancelledError):
        await importing
    assert counted == [result]
