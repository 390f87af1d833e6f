"""CPU seconds of tests and fixtures, with the processes that they started and the servers.

`--cpu` ends a run with the costliest folders, files, tests and fixtures; `--cpu-file FILE` also
writes every test. CPU time, unlike the durations of pytest, does not depend on what else the
machine does. A test has the servers of `tools/services.py` counted with it if it runs alone:
workers share them, so with `-n 2` and more only their sum is known.
"""

import json
import os
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from tools.processes import read_cpu_of_trees
from tools.services import STATE, attach

LISTED = 40
PROPERTY = "cpu"
FIXTURE_PREFIX = "cpu:"


def read_own_cpu() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def find_servers() -> dict[str, int]:
    """Return the processes of the servers that `tools/services.py` has started, by name."""
    file = os.environ.get(STATE)
    servers = attach(file).servers if file else {}
    return {name: server.pid for name, server in servers.items() if server.pid is not None}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", action="store_true", help="print the costliest tests by CPU time")
    parser.addoption("--cpu-file", type=Path, help="write the CPU seconds of every test as JSON")


class CpuRecorder:
    """Measures each test; reports carry the figures out of worker processes.

    A test costs what was used since the one before it ended, whatever process used it.
    """

    def __init__(self, roots: Collection[int]) -> None:
        self._roots = roots
        self._before = read_cpu_of_trees(roots)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the cost of importing and collecting every test, which each worker pays."""
        now = read_cpu_of_trees(self._roots)
        for item in session.items[:1]:
            item.user_properties.append((f"{FIXTURE_PREFIX}(collection)", now - self._before))
        self._before = now

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        try:
            return (yield)
        finally:
            now = read_cpu_of_trees(self._roots)
            # Renderers of a browser take their seconds along when they end.
            item.user_properties.append((PROPERTY, max(0.0, now - self._before)))
            self._before = now

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        before = read_own_cpu()
        try:
            return (yield)
        finally:
            figure = (f"{FIXTURE_PREFIX}{fixturedef.argname}", read_own_cpu() - before)
            # The public `request.node` of a session fixture is not a test.
            request._pyfuncitem.user_properties.append(figure)


class ServerCpu:
    """What each server has used since the beginning of the run."""

    def __init__(self) -> None:
        self._pids = find_servers()
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        return {name: read_cpu_of_trees([pid]) for name, pid in self._pids.items()}

    def describe(self) -> str:
        now = self._read()
        used = {name: now[name] - before for name, before in self._before.items()}
        return " · ".join(f"{name} {seconds:,.1f} s" for name, seconds in used.items())


_SERVERS = pytest.StashKey[ServerCpu]()


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if config.getoption("cpu") or config.getoption("cpu_file"):
        alone = not config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
        servers = find_servers().values() if alone else ()
        config.stash[_SERVERS] = ServerCpu()
        config.pluginmanager.register(CpuRecorder([os.getpid(), *servers]))


class CpuFigures:
    """Sums of CPU seconds by folder, file, fixture and test, from the reports of a run."""

    def __init__(self, reports: Iterable[pytest.TestReport]) -> None:
        self.folders: defaultdict[str, float] = defaultdict(float)
        self.files: defaultdict[str, float] = defaultdict(float)
        self.fixtures: defaultdict[str, float] = defaultdict(float)
        self.tests: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        for report in reports:
            for name, value in report.user_properties:
                if not isinstance(value, float):
                    continue
                if name == PROPERTY:
                    self.tests[report.nodeid] += value
                elif name.startswith(FIXTURE_PREFIX):
                    self.fixtures[name.removeprefix(FIXTURE_PREFIX)] += value
                    self.counts[name.removeprefix(FIXTURE_PREFIX)] += 1
        for test, seconds in self.tests.items():
            file = test.partition("::")[0]
            folder = "/".join(file.split("/")[:2])
            self.files[file] += seconds
            self.folders[folder] += seconds
            self.counts.update((test, file, folder))

    def as_json(self) -> str:
        return json.dumps({"tests": self.tests, "fixtures": self.fixtures}, indent=1)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    # The report of the last phase carries the figures of all phases.
    reports = [
        report
        for found in terminalreporter.stats.values()
        for report in found
        if isinstance(report, pytest.TestReport) and report.when == "teardown"
    ]
    figures = CpuFigures(reports)
    if not figures.tests:
        return
    if config.getoption("cpu_file"):
        config.getoption("cpu_file").write_text(figures.as_json())
    rankings = {
        "folder": figures.folders,
        "file": figures.files,
        "fixture": figures.fixtures,
        "test": figures.tests,
    }
    for title, seconds in rankings.items():
        terminalreporter.section(f"CPU seconds by {title}")
        for name, figure in sorted(seconds.items(), key=lambda pair: -pair[1])[:LISTED]:
            terminalreporter.write_line(f"{figure:9.2f} s  {figures.counts[name]:5}  {name}")
    terminalreporter.write_line(f"CPU seconds of servers: {config.stash[_SERVERS].describe()}")
    total = sum(figures.tests.values())
    terminalreporter.write_line(f"CPU seconds of all tests: {total:,.1f}", bold=True)
