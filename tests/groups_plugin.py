"""Test groups: every test belongs to exactly one of them, and `make test-GROUP` runs one.

The folder decides first: `tests/faults`, `tests/browser`, and for `api` the folders that talk to
the whole program over HTTP. Of the other tests those that need PostgreSQL or MariaDB are
`databases`, and the rest is `unit`.

`--group NAME` selects a group. Every run ends with the number of tests and the seconds of each
group. The outcome of the last run is kept in pytest's cache for `tools.flaky`.
"""

import os
import signal
from collections import Counter, defaultdict
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tools.flaky import RECORD, RunRecord

ROOT = Path(__file__).parents[1]

FOLDERS = {
    "tests/faults/": "faults",
    "tests/browser/": "browser",
    "tests/access/": "api",
    "tests/flows/": "api",
    "tests/web/": "api",
}
GROUPS = ("unit", "databases", "api", "browser", "faults")
SERVERS = ("postgresql", "mysql")
SERVER_FIXTURES = frozenset(f"{server}_url" for server in SERVERS)

LONG = (
    "tests/faults/",
    "tests/web/test_openapi.py",
    "tests/browser/",
    "tests/flows/",
    "tests/transfer/",
    "tests/cli/",
    "tests/redirect/",
)
"""Where tests take longest.

They start first, so that in the end no process waits for a long file of another.

The proofs come before everything: they stay on one process and mostly wait, while the others use
the processors.
"""
SPLIT = frozenset({"tests/web/test_openapi.py", "tests/transfer/test_move.py"})
"""Files whose tests share nothing and take a minute each.

These are distributed one by one, all others by file.
"""


def folder_group(path: str) -> str | None:
    """Return the group that owns a test file by its folder, or None if each test decides."""
    return next((group for folder, group in FOLDERS.items() if path.startswith(folder)), None)


def group_of(path: str, fixtures: Sequence[str], parameters: Sequence[str]) -> str:
    """Return the group of a test: of its folder, else `databases` if it needs a database server,
    else `unit`.
    """
    needs_server = SERVER_FIXTURES.intersection(fixtures) or set(SERVERS).intersection(parameters)
    return folder_group(path) or ("databases" if needs_server else "unit")


def _group_of_item(item: pytest.Item) -> str:
    path, _, _ = item.nodeid.partition("::")
    parameters = item.name.partition("[")[2].rstrip("]").split("-")
    return group_of(path, getattr(item, "fixturenames", ()), parameters)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--group", choices=GROUPS, help="run only the tests of this group")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of the wanted group.

    Importing all files takes longer than running some groups.
    """
    wanted = config.getoption("group")
    if (
        wanted is None
        or collection_path.suffix != ".py"
        or not collection_path.is_relative_to(ROOT)
    ):
        return None
    owner = folder_group(collection_path.relative_to(ROOT).as_posix())
    others = owner != wanted if wanted in FOLDERS.values() else owner is not None
    return others or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long tests first, note the group of each for the summary, and deselect others."""
    items.sort(
        key=lambda item: next(
            (place for place, name in enumerate(LONG) if item.nodeid.startswith(name)), len(LONG)
        )
    )
    groups = {item: _group_of_item(item) for item in items}
    for item, group in groups.items():
        item.user_properties.append(("group", group))
    wanted = config.getoption("group")
    if wanted is not None:
        others = [item for item in items if groups[item] != wanted]
        items[:] = [item for item in items if groups[item] == wanted]
        config.hook.pytest_deselected(items=others)


TEST_TIMEOUT = int(os.environ.get("REFRACT_TEST_TIMEOUT", "400"))
"""Seconds after which a test fails and shows where it waits, so that the others can run.

`faulthandler_timeout` ends the process if that does not help. 0 means never: at the size of a proof
a test may take as long as it likes.
"""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    def fail(_number: int, _frame: object) -> None:
        pytest.fail(f"{item.nodeid} has not ended after {TEST_TIMEOUT} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, TEST_TIMEOUT)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist comes without types
    """Distribute by file, since tests may share a server or a browser, except those of `SPLIT`."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, _ = nodeid.partition("::")
        return nodeid if path in SPLIT else path


@pytest.hookimpl(optionalhook=True)  # unknown without xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling:
    return FileScheduling(config, log)


def _reports(reporter: pytest.TerminalReporter, *categories: str) -> list[pytest.TestReport]:
    """Return the reports of tests in these categories, without reports of collected files."""
    found = [report for category in categories for report in reporter.stats.get(category, [])]
    return [report for report in found if isinstance(report, pytest.TestReport)]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what failed. After `services_plugin`, which may turn skipped tests into a failed run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    cache = getattr(session.config, "cache", None)
    if cache is None or reporter is None or hasattr(session.config, "workerinput"):
        return
    failed = {
        report.nodeid
        for category in ("failed", "error")
        for report in reporter.stats.get(category, [])
    }
    skipped = len(reporter.stats.get("skipped", []))
    passed = len({report.nodeid for report in _reports(reporter, "passed")} - failed)
    cache.set(RECORD, RunRecord(int(session.exitstatus), sorted(failed), passed, skipped).as_dict())


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in _reports(terminalreporter, "", "passed", "failed", "error", "skipped"):
        group = dict(report.user_properties).get("group")
        if isinstance(group, str):
            counts[group] += report.when == "call"
            seconds[group] += report.duration
    if counts:
        figures = " · ".join(
            f"{group} {counts[group]:,} in {seconds[group]:,.0f} s"
            for group in GROUPS
            if group in counts
        )
        terminalreporter.write_line(f"tests run per group: {figures}", bold=True)
