"""The groups of tests: together they are all tests, and no test runs in two of them."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests import groups_plugin
from tests.groups_plugin import FOLDERS, GROUPS, SPLIT, folder_group, group_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("path", "fixtures", "parameters", "group"),
    [
        ("tests/faults/test_proofs.py", ["postgresql_url"], [], "faults"),
        ("tests/browser/test_lists.py", ["site"], [], "browser"),
        ("tests/web/test_bad_input.py", ["database"], ["mysql"], "api"),
        ("tests/links/test_api.py", ["database"], ["x", "postgresql"], "databases"),
        ("tests/links/test_api.py", ["database"], ["sqlite"], "unit"),
        ("tests/cli/test_doctor.py", ["postgresql_url"], [], "databases"),
        ("tests/core/test_ids.py", [], [], "unit"),
    ],
)
def test_a_test_belongs_to_one_group(
    path: str, fixtures: list[str], parameters: list[str], group: str
) -> None:
    assert group_of(path, fixtures, parameters) == group


def test_groups_and_folders_exist() -> None:
    files = {file.relative_to(ROOT).as_posix() for file in ROOT.glob("tests/**/test_*.py")}
    assert {folder_group(file) for file in files} == {*FOLDERS.values(), None}
    assert files >= SPLIT
    makefile = (ROOT / "Makefile").read_text()
    for group in GROUPS:
        assert f"\ntest-{group}:" in makefile
        assert f"\nSERVICES_{group} " in makefile


@pytest.mark.parametrize(("group", "others"), [("faults", 0), ("databases", 1)])
def test_a_group_is_collected_without_the_files_of_others(group: str, others: int) -> None:
    """Given one file of faults and one that has tests of two other groups."""
    files = ["tests/faults/test_sleep.py", "tests/core/test_worker_ids.py"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        "--group",
        group,
        *files,
    ]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)

    names = [line for line in done.stdout.splitlines() if "::" in line]
    assert done.returncode == 0, done.stdout + done.stderr
    assert names
    assert all(name.startswith(files[others]) for name in names)
    assert all("sqlite" not in name for name in names)


def test_a_test_that_waits_for_ever_fails(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups_plugin, "TEST_TIMEOUT", 0.05)
    call = groups_plugin.pytest_runtest_call(request.node)
    next(call)

    with pytest.raises(pytest.fail.Exception, match="has not ended after"):
        asyncio.run(asyncio.Event().wait())
    call.close()
