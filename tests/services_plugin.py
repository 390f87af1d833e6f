"""Real services for the tests, and an honest account of what ran.

`python tools/services.py run -- pytest` (which is what `make test` does) tells by REFRACT_TEST_…
where each service is. A test asks for one by a fixture, or by `address_of`; a service that is not
there skips the test, and the run ends with one loud line about it. With CI set every skip fails the
run: a build that tested half must not look green.
"""

import os
from collections import Counter

import pytest

from tools.services import STATE, VARIABLES, Services, attach

DATABASES = ("sqlite", "postgresql", "mysql")
ABSENT = "absent service: "


def _started() -> Services | None:
    """None where pytest runs without `tools/services.py run` around it."""
    file = os.environ.get(STATE)
    return attach(file) if file else None


def address_of(name: str) -> str:
    """The URL of a service, or the path of a program; skips the test when it is absent."""
    address = os.environ.get(VARIABLES[name])
    if not address:
        pytest.skip(f"{ABSENT}{name}")
    return address


@pytest.fixture(scope="session")
def postgresql_url() -> str:
    return address_of("postgresql")


@pytest.fixture(scope="session")
def mysql_url() -> str:
    return address_of("mysql")


@pytest.fixture(scope="session")
def redis_url() -> str:
    return address_of("redis")


@pytest.fixture(scope="session")
def chromium_path() -> str:
    return address_of("chromium")


@pytest.fixture(scope="session")
def private_services() -> Services:
    """Servers that a fault test may stop, kill and start.

    `private_services.server("redis").restart()`.
    """
    started = _started()
    if started is None:
        pytest.skip(f"{ABSENT}servers of our own to stop and start")
    return started


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Note on which database a test runs, in a form that reaches the summary from every worker
    process.
    """
    for item in items:
        call = getattr(item, "callspec", None)
        if call is not None and "database" in call.params:
            database = call.params["database"]
            words = (
                [database]
                if isinstance(database, str)
                else item.name.partition("[")[2].rstrip("]").split("-")
            )
            item.user_properties.extend(("database", word) for word in words if word in DATABASES)


def _skips(reporter: pytest.TerminalReporter) -> list[str]:
    """Why each skipped test was skipped."""
    reports = reporter.stats.get("skipped", [])
    return [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in reports
        if isinstance(report.longrepr, tuple)
    ]


def _reporter(config: pytest.Config) -> pytest.TerminalReporter | None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter if isinstance(reporter, pytest.TerminalReporter) else None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = _reporter(session.config)
    in_worker = hasattr(session.config, "workerinput")
    if (
        reporter
        and not in_worker
        and os.environ.get("CI")
        and _skips(reporter)
        and session.exitstatus in {0, pytest.ExitCode.NO_TESTS_COLLECTED}
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    passed = terminalreporter.stats.get("passed", [])
    counts = Counter(
        value for report in passed for key, value in report.user_properties if key == "database"
    )
    if counts:
        figures = " · ".join(f"{database} {counts[database]}" for database in DATABASES)
        terminalreporter.write_line(f"tests passed per database: {figures}", bold=True)

    skips = _skips(terminalreporter)
    absent = Counter(reason.removeprefix(ABSENT) for reason in skips if reason.startswith(ABSENT))
    if absent:
        started = _started()
        advice = (
            "; ".join(f"{name}: {why.splitlines()[0]}" for name, why in started.absent.items())
            if started
            else "use `make test`"
        )
        what = ", ".join(f"{count} for want of {name}" for name, count in absent.items())
        terminalreporter.write_line(f"!!! NOT TESTED: {what} ({advice})", red=True, bold=True)
    if skips and os.environ.get("CI"):
        terminalreporter.write_line(
            f"!!! CI is set, so {len(skips)} skipped test(s) fail this run", red=True, bold=True
        )
