"""Repeated tests: a flaky test is counted and named; only failed tests are repeated."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import flaky

ROOT = Path(__file__).parents[2]

INNER = """
import pathlib
import pytest

def fails_once(name):
    seen = pathlib.Path(name)
    if not seen.exists():
        seen.touch()
        raise AssertionError(name)

def test_passes():
    pass
"""


def _run(root: Path, tests: str, *options: str) -> None:
    """Run the tests in a project of their own, in two worker processes, as `make test` does."""
    (root / "pytest.ini").write_text("[pytest]\naddopts = -p tests.groups_plugin\n")
    (root / "test_inner.py").write_text(INNER + tests)
    command = [sys.executable, "-m", "pytest", "-n", "2", *options]
    subprocess.run(command, check=False, cwd=root, capture_output=True)


@pytest.fixture(autouse=True)
def _from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CI", "true")


def _flaky_tests(count: int) -> str:
    return "".join(
        f"def test_flaky_{number}():\n    fails_once('{number}')\n" for number in range(count)
    )


def test_a_flaky_test_is_named_and_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(tmp_path, _flaky_tests(1))

    assert flaky.main(tmp_path, tmp_path / "dist/flaky.txt") == 0

    assert capsys.readouterr().out.endswith("flaky: 1\n  test_inner.py::test_flaky_0\n")
    assert (tmp_path / "dist/flaky.txt").read_text() == "test_inner.py::test_flaky_0\n"


def test_a_fault_fails_and_flaky_tests_beside_it_are_still_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(tmp_path, _flaky_tests(1) + "def test_fault():\n    assert False\n")

    assert flaky.main(tmp_path, tmp_path / "flaky.txt") == 1

    assert (
        "flaky: 1\n  test_inner.py::test_flaky_0\nFailed: 1 tests failed twice."
        in capsys.readouterr().out
    )


def test_many_flaky_tests_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(tmp_path, _flaky_tests(flaky.MAX_FLAKY + 1))

    assert flaky.main(tmp_path, tmp_path / "flaky.txt") == 1

    assert len((tmp_path / "flaky.txt").read_text().splitlines()) == flaky.MAX_FLAKY + 1
    assert f"more than {flaky.MAX_FLAKY} tests are flaky" in capsys.readouterr().out


def test_a_run_without_failed_tests_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert flaky.main(tmp_path, tmp_path / "flaky.txt") == 1
    assert "no tests ran" in capsys.readouterr().out

    _run(tmp_path, "", "--no-such-option")
    assert flaky.main(tmp_path, tmp_path / "flaky.txt") == 1

    _run(tmp_path, "")
    assert flaky.main(tmp_path, tmp_path / "flaky.txt") == 1
    assert "pytest ended with status 0 and 0 failed tests" in capsys.readouterr().out


def test_skipped_tests_are_not_made_green_by_a_repetition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(tmp_path, _flaky_tests(1) + "def test_skipped():\n    pytest.skip('absent')\n")

    assert flaky.main(tmp_path, tmp_path / "flaky.txt") == 1
    assert "1 tests were skipped" in capsys.readouterr().out


def test_an_interrupted_run_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(tmp_path, _flaky_tests(2), "--maxfail", "1")

    assert flaky.main(tmp_path, tmp_path / "flaky.txt") == 1
    assert "pytest ended with status 2" in capsys.readouterr().out


def test_a_module_that_does_not_load_fails(tmp_path: Path) -> None:
    _run(tmp_path, "fails_once('module')\n")

    assert flaky.main(tmp_path, tmp_path / "flaky.txt") == 1
