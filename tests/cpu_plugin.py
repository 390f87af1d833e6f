"""CPU seconds of tests and fixtures, of this process and of the processes that it started.

`--cpu` ends a run with the costliest files, tests and fixtures; `--cpu-file FILE` also writes
every test. CPU time, unlike the durations of pytest, does not depend on what else the machine does.
The servers of `tools/services.py` are not counted: they belong to another process.
"""

import json
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

LISTED = 40
PROPERTY = "cpu"
FIXTURE_PREFIX = "cpu:"


def read_cpu() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", action="store_true", help="print the costliest tests by CPU time")
    parser.addoption("--cpu-file", type=Path, help="write the CPU seconds of every test as JSON")


class CpuRecorder:
    """Measures the phases of each test; reports carry the figures out of worker processes."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        return (yield from self._measure(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        return (yield from self._measure(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        return (yield from self._measure(item))

    def _measure(self, item: pytest.Item) -> Generator[None]:
        before = read_cpu()
        try:
            return (yield)
        finally:
            item.user_properties.append((PROPERTY, read_cpu() - before))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        before = read_cpu()
        try:
            return (yield)
        finally:
            figure = (f"{FIXTURE_PREFIX}{fixturedef.argname}", read_cpu() - before)
            # The public `request.node` of a session fixture is not a test.
            request._pyfuncitem.user_properties.append(figure)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("cpu") or config.getoption("cpu_file"):
        config.pluginmanager.register(CpuRecorder())


class CpuFigures:
    """Sums of CPU seconds by file, fixture and test, from the reports of a run."""

    def __init__(self, reports: Iterable[pytest.TestReport]) -> None:
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
            self.files[file] += seconds
            self.counts.update((test, file))

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
    rankings = {"file": figures.files, "fixture": figures.fixtures, "test": figures.tests}
    for title, seconds in rankings.items():
        terminalreporter.section(f"CPU seconds by {title}")
        for name, figure in sorted(seconds.items(), key=lambda pair: -pair[1])[:LISTED]:
            terminalreporter.write_line(f"{figure:9.2f} s  {figures.counts[name]:5}  {name}")
    total = sum(figures.tests.values())
    terminalreporter.write_line(f"CPU seconds of all tests: {total:,.1f}", bold=True)
