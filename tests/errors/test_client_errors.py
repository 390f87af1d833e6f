"""Every operation lists exactly the 4xx errors that it can send."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.conftest import prepare_template
from tests.documented import operations_of
from tests.errors import accounts, domains, library, links, lists, repeated, stats, teams
from tests.errors.common import COMMON
from tests.errors.provoking import PROVOCATIONS
from tests.errors.site import OPERATION_ROWS, Asking, Site, open_site

pytestmark = pytest.mark.asyncio(loop_scope="module")
TABLES = (accounts, domains, library, links, lists, repeated, stats, teams)
"""The modules that fill `PROVOCATIONS`."""
OPERATIONS = [
    route
    for route in OPERATION_ROWS
    if "/api/v1/" in route or route.split(" ")[1] in ("/health", "/ready", "/metrics")
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    await prepare_template("sqlite", scratch)
    folder = tmp_path_factory.mktemp("errors")
    shutil.copyfile(scratch / "template.db", folder / "refract.db")
    limits = dict.fromkeys(("creates_per_hour", "captures_per_hour", "misses_per_minute"))
    given = {**limits, "team_creation": "everyone"}
    async with open_site(folder / "data", f"sqlite:///{folder / 'refract.db'}", **given) as opened:
        yield opened


async def test_every_operation_is_provoked(site: Site) -> None:
    described = {name for name, _ in operations_of(site.app.api.openapi())}

    assert described == set(OPERATIONS)
    assert set(PROVOCATIONS) <= described


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_operation_lists_exactly_the_errors_that_it_sends(
    site: Site, operation: str
) -> None:
    asking = Asking(site, operation)
    for provoke in COMMON:
        await provoke(asking)
    for code, provoke in PROVOCATIONS.get(operation, {}).items():
        await provoke(asking)
        assert code in asking.sent, (
            f"{operation} was not provoked to {code}, but to {sorted(asking.sent)}"
        )

    listed = {
        code: status for code, status in site.errors.operations[operation].items() if status < 500
    }
    assert {code: status for code, status in asking.sent.items() if status < 500} == listed
    assert all(status < 500 for status in asking.sent.values()), asking.sent
