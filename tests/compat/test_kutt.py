"""Kutt's REST API by the clients of npm and PyPI."""

from datetime import timedelta

import httpx
import pytest

from refract.compat.kutt.errors import InvalidKuttExpiry
from refract.compat.kutt.shapes import build_uuid, parse_duration, parse_uuid
from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.clicks.counting import click, stored
from tests.compat.conftest import run_client


async def test_the_client_of_npm(address: str, key: str) -> None:
    steps = await run_client("kutt.mjs", address, key)

    assert steps["health"] is True
    assert steps["user"]["apikey"] == key
    assert steps["user"]["email"] == "ada@example.com"
    made = steps["create"]
    assert len(made["id"]) == 36
    assert (made["address"], made["link"]) == ("Kutt-Name", f"{address}/Kutt-Name")
    assert made["expire_in"] == "2026-06-03T12:00:00.000Z"
    assert steps["reuse"]["id"] == made["id"]
    assert (steps["list"]["total"], steps["list"]["limit"]) == (1, 5)
    assert steps["list"]["data"][0]["id"] == made["id"]
    updated = steps["update"]
    assert (updated["address"], updated["description"]) == ("Other-Name", "New")
    assert updated["target"] == "https://example.com/b"
    assert updated["id"] == made["id"]
    stats = steps["stats"]  # it sends DELETE
    assert [len(stats[name]["views"]) for name in ("lastDay", "lastWeek")] == [24, 7]
    assert [len(stats[name]["views"]) for name in ("lastMonth", "lastYear")] == [30, 12]
    assert steps["still"]["total"] == 1
    assert steps["remove"] == "Link has been deleted successfully." or steps["remove"]["message"]
    assert steps["gone"]["total"] == 0
    assert "failed" in steps["badKey"]


async def test_the_client_of_pypi_sends_forms(address: str, key: str) -> None:
    steps = await run_client("kutt_form.py", address, key)

    codes = {name: answer["code"] for name, answer in steps.items()}
    assert codes == {
        "submit": 201, "reuse": 200, "list": 200, "stats": 200, "update": 200, "taken": 400,
        "password": 400, "locked": 201, "bad_key": 401, "delete": 200, "gone": 404,
    }  # fmt: skip
    assert steps["locked"]["data"]["password"] is True
    assert steps["reuse"]["data"]["id"] == steps["submit"]["data"]["id"]
    assert steps["list"]["data"]["limit"] == 1  # from the body of a GET
    assert steps["update"]["data"]["address"] == "Form"
    assert steps["taken"]["data"] == {"error": 'The name "form" is already in use. Choose another.'}


async def test_statistics_count_by_value(
    rt: Runtime, http: httpx.AsyncClient, ada: User, key: str
) -> None:
    async with rt.db.write() as session:
        link = await make.link(session, rt, ada)
    await stored(rt, [click(link.id, rt.clock.now() - timedelta(hours=2))] * 2)

    response = await http.get(
        f"/api/v2/links/{build_uuid(link.id)}/stats/", headers={"X-API-KEY": key}
    )

    day = response.json()["lastDay"]
    assert day["total"] == sum(day["views"]) == 2
    assert day["stats"]["browser"] == [{"name": "firefox", "value": 2}]
    assert response.json()["visit_count"] == 2


@pytest.mark.parametrize("number", [0, 1, 2**62 - 1, 2**62, 2**63 - 1, 361890234523648])
def test_ids_are_uuids_and_back(number: int) -> None:
    assert parse_uuid(build_uuid(number)) == number


def test_other_uuids_are_no_ids() -> None:
    assert parse_uuid("9b2bc6c6-3a4b-4f0b-8f33-000000000000") is None
    assert parse_uuid("nonsense") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2 days", 172_800), ("8h", 28_800), ("1m", 60), ("1.5 hours", 5_400), ("60000", 60)],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == timedelta(seconds=expected)


@pytest.mark.parametrize("text", ["", "1s", "day", "-1 day", "1 fortnight", "999999999y"])
def test_bad_durations(text: str) -> None:
    with pytest.raises(InvalidKuttExpiry):
        parse_duration(text)
