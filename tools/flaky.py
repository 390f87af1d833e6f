"""Repeat failed tests once, alone, and report those that then pass as flaky.

    python -m tools.flaky FILE    repeat what failed in the last run; write flaky tests to FILE

A test that fails again fails the build, and so do more than `MAX_FLAKY` flaky tests. Nothing is
repeated if the last run was incomplete: interrupted, with a crash of pytest itself, or with skipped
tests where `CI` forbids them.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RECORD = "refract/last_run"
MAX_FLAKY = 8
MAX_REPEATED = 25
TESTS_FAILED = 1  # pytest's exit status for a complete run in which tests failed


@dataclass(frozen=True)
class RunRecord:
    """The outcome of a test run: pytest's exit status, names of failed tests, numbers of the
    others.
    """

    exit_status: int
    failed: list[str]
    passed: int
    skipped: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_record(root: Path) -> RunRecord | None:
    """Return the record of the last run from pytest's cache, or None without one."""
    file = root / ".pytest_cache/v" / RECORD
    return RunRecord(**json.loads(file.read_text())) if file.exists() else None


def refuse(last: RunRecord | None) -> str | None:
    """Return why the last run must not be repeated, or None if it may."""
    if last is None:
        return "no tests ran, so the failure is not one of a test"
    if last.exit_status != TESTS_FAILED or not last.failed:
        return f"pytest ended with status {last.exit_status} and {len(last.failed)} failed tests"
    if last.skipped and os.environ.get("CI"):
        return f"{last.skipped} tests were skipped"
    if len(last.failed) > MAX_REPEATED:
        return f"{len(last.failed)} tests failed, and more than {MAX_REPEATED} are no coincidence"
    return None


def repeat(root: Path) -> RunRecord | None:
    """Run the failed tests again, one after another in a single process."""
    (root / ".pytest_cache/v" / RECORD).unlink()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--last-failed",
        "--last-failed-no-failures",
        "none",
        "--verbose",
    ]
    subprocess.run(command, check=False, cwd=root)
    return read_record(root)


def judge(first: RunRecord, second: RunRecord | None) -> tuple[list[str], str | None]:
    """Return the flaky tests, and why the build fails, or None if it passes."""
    if second is None or second.passed + len(second.failed) != len(first.failed):
        return [], "the failed tests were not all repeated"
    flaky = [name for name in first.failed if name not in second.failed]
    if second.failed or second.exit_status:
        return flaky, f"{len(second.failed)} tests failed twice"
    if len(flaky) > MAX_FLAKY:
        return flaky, f"more than {MAX_FLAKY} tests are flaky"
    return flaky, None


def main(root: Path, output: Path) -> int:
    """Repeat what failed, print and write the flaky tests; return the exit status of the build."""
    first = read_record(root)
    why = refuse(first)
    if first is None or why:
        print(f"Not repeated: {why}.")
        return 1
    print(f"Repeating, alone, the {len(first.failed)} tests that failed:", flush=True)
    flaky, why = judge(first, repeat(root))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("".join(f"{name}\n" for name in flaky))
    print(f"flaky: {len(flaky)}", *(f"  {name}" for name in flaky), sep="\n")
    if why:
        print(f"Failed: {why}.")
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd(), Path(sys.argv[1])))
