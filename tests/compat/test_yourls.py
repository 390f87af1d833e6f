"""YOURLS' API by its clients of PyPI, and by recorded requests of its plug-ins."""

import hashlib
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from sqlalchemy import select

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.core.secrets import hash_credential
from refract.identity.keys import derive_signature_token
from refract.identity.models import ApiKey
from tests.client import on_sqlite
from tests.compat.conftest import run_client

PATH = "/yourls-api.php"


@pytest.fixture
async def token(rt: Runtime, key: str) -> str:
    async with rt.db.read() as session:
        row = await session.scalar(select(ApiKey.id).where(ApiKey.key_hash == hash_credential(key)))
    assert row is not None
    return derive_signature_token(rt.secret, row)


async def test_real_clients(address: str, key: str, token: str) -> None:
    steps = await run_client("yourls_clients.py", address, key, token)

    for place, name in enumerate(("signed", "named"), 1):
        made = steps[f"{name} shorten"]
        assert made["shorturl"] == f"{address}/{name}"
        assert made["title"] == "A title"
        assert made["date"] == "2026-06-01 12:00:00"
        assert made["ip"] == ""
        assert steps[f"{name} expand"] == f"https://example.com/{name}"
        assert steps[f"{name} url_stats"]["clicks"] == 0
        assert len(steps[f"{name} stats"]) == 1
        assert steps[f"{name} totals"] == place
        assert "not found" in steps[f"{name} absent"]["message"]
        # This client tells the two apart only by answers of 200, which YOURLS 1.10 does not give.
        assert steps[f"{name} taken"]["failed"] == "YOURLSHTTPError"
        assert steps[f"{name} known"]["failed"] == "YOURLSHTTPError"
    assert steps["bad_signature"]["failed"] == "YOURLSHTTPError"
    assert steps["py shorten"]["shorturl"] == f"{address}/py"
    assert steps["py expand"] == steps["py with user"] == "https://example.com/py"
    assert steps["py stats"]["total_links"] == "3"
    assert steps["py url_stats"]["url"] == "https://example.com/py"
    assert steps["py bad key"]["failed"] == "Pyourls3APIError"


@on_sqlite
@pytest.mark.parametrize("name", ["md5", "sha256"])
@pytest.mark.parametrize("token_first", [True, False])
async def test_signatures_expire_after_half_a_day(
    http: httpx.AsyncClient, clock: ManualClock, token: str, name: str, token_first: bool
) -> None:
    stamp = str(int(clock.now().timestamp()))
    text = token + stamp if token_first else stamp + token
    signature = hashlib.new(name, text.encode()).hexdigest()
    sent = {"timestamp": stamp, "signature": signature, "hash": name, "action": "version"}
    sent["format"] = "json"

    fresh = await http.get(PATH, params=sent)
    other = await http.get(PATH, params={**sent, "timestamp": str(int(stamp) + 1)})
    clock.advance(timedelta(hours=12).total_seconds())
    late = await http.get(PATH, params=sent)

    assert fresh.json() == {"version": "1.10.4"}
    assert other.status_code == late.status_code == 403
    assert late.json() == {"message": "Please log in", "errorCode": "403", "callback": ""}


@on_sqlite
async def test_formats(http: httpx.AsyncClient, token: str) -> None:
    async def ask(**more: str) -> httpx.Response:
        given = {"signature": token, "action": "shorturl", **more}
        return await http.get(PATH, params=given)

    xml = await ask(url="https://example.com/?a=1&b=<", keyword="one")
    bare = await ask(url="https://example.com/2", keyword="two", format="JSON")
    jsonp = await ask(url="https://example.com/3", keyword="three", format="jsonp", callback="a.b$")
    simple = await ask(url="https://example.com/3", format="simple")
    json = await ask(format="json")

    root = ET.fromstring(xml.text)  # noqa: S314 - our own
    assert root.findtext("url/url") == "https://example.com/?a=1&b=<"
    assert xml.headers["content-type"].startswith("application/xml")
    assert bare.text == f"{str(http.base_url).rstrip('/')}/two"
    assert jsonp.text.startswith('a.b$({"status":"success"')
    assert jsonp.headers["content-type"].startswith("application/javascript")
    assert jsonp.headers["cross-origin-resource-policy"] == "cross-origin"
    assert (simple.status_code, simple.text) == (400, f"{str(http.base_url).rstrip('/')}/three")
    assert (json.status_code, json.json()["code"]) == (400, "error:nourl")


@on_sqlite
@pytest.mark.parametrize(
    "callback", ["", "alert(1)", "a b", "a;b", "1a", "a\nb", "a" * 200, "<script>", "ä"]
)
async def test_the_name_of_a_callback_is_checked(
    http: httpx.AsyncClient, token: str, callback: str
) -> None:
    given: dict[str, Any] = {"signature": token, "action": "version", "format": "jsonp"}
    response = await http.get(PATH, params={**given, "callback": callback})

    assert response.status_code == 400
    assert response.headers["content-type"] == "application/json"
    assert response.json() == {"errorCode": "400", "error": "Invalid callback parameter"}


@on_sqlite
async def test_plug_ins_change_and_delete(http: httpx.AsyncClient, token: str) -> None:
    proof = {"signature": token, "format": "json"}
    page = "https://example.com/1"
    await http.post(PATH, data={**proof, "action": "shorturl", "url": page, "keyword": "one"})
    changed = {"action": "update", "shorturl": "one", "url": "https://example.com/2"}
    updated = await http.post(PATH, data={**proof, **changed})
    expanded = await http.get(PATH, params={**proof, "action": "expand", "shorturl": "one"})
    deleted = await http.get(PATH, params={**proof, "action": "delete", "shorturl": "one"})
    gone = await http.get(PATH, params={**proof, "action": "expand", "shorturl": "one"})

    assert updated.status_code == deleted.status_code == 200
    assert expanded.json()["longurl"] == "https://example.com/2"
    assert (gone.status_code, gone.json()["errorCode"]) == (404, "404")
