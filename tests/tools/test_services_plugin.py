"""The summary of a test run: it names what did not run, and fails for it in CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.services import STATE, VARIABLES

ROOT = Path(__file__).parents[2]

INNER = """
import pytest

@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    return request.param if request.param == "sqlite" else request.getfixturevalue("postgresql_url")

@pytest.mark.parametrize("word", ["mysql", "other"])
def test_on(database, word):
    pass

def test_without_a_database():
    pass
"""


def run_inner(tmp_path: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "test_inner.py"
    file.write_text(INNER)
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in {*VARIABLES.values(), STATE, "CI"}
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        str(file),
        "-c",
        "pyproject.toml",
        "--rootdir",
        str(ROOT),
        "-p",
        "no:cacheprovider",
        *options,
    ]
    return subprocess.run(
        command, check=False, cwd=ROOT, env=environment | variables, capture_output=True, text=True
    )


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "in workers"])
def test_tests_are_counted_by_database(tmp_path: Path, options: list[str]) -> None:
    done = run_inner(tmp_path, *options, REFRACT_TEST_POSTGRESQL_URL="postgresql://somewhere")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests passed per database: sqlite 2 · postgresql 2 · mysql 0" in done.stdout
    assert "NOT TESTED" not in done.stdout


def test_an_absent_service_is_one_loud_line(tmp_path: Path) -> None:
    done = run_inner(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "tests passed per database: sqlite 2 · postgresql 0 · mysql 0" in done.stdout
    assert done.stdout.count("!!! NOT TESTED: 2 for want of postgresql (use `make test`)") == 1


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "in workers"])
def test_in_ci_a_skip_is_a_failure(tmp_path: Path, options: list[str]) -> None:
    done = run_inner(tmp_path, *options, CI="true")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "CI is set, so 2 skipped test(s) fail this run" in done.stdout
