"""The form of a link: bare URLs, campaign fields, and what follows saving."""

import json
from typing import Any

import pytest
from httpx import AsyncClient, Response

from refract.core.runtime import Runtime
from refract.identity.models import User
from tests import make
from tests.client import by_cookie, on_sqlite

pytestmark = on_sqlite
HTMX = {"HX-Request": "true"}


@pytest.fixture
async def as_ada(client: AsyncClient, rt: Runtime, ada: User) -> AsyncClient:
    async with rt.db.write() as session:
        client.headers.update(by_cookie(rt, await make.cookie(session, rt, ada)))
    return client


async def _send(client: AsyncClient, path: str = "/app/links", **fields: str) -> Response:
    return await client.post(path, data={"then": "link", **fields})


async def _newest(client: AsyncClient) -> dict[str, Any]:
    link: dict[str, Any] = (await client.get("/api/v1/links")).json()["items"][0]
    return link


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("example.com", "https://example.com"),
        (" example.com/page?a=1 ", "https://example.com/page?a=1"),
        ("example.com:8080/x", "https://example.com:8080/x"),
        ("192.168.0.2:8096", "https://192.168.0.2:8096"),
        ("jira.example.com/{1}", "https://jira.example.com/{1}"),
    ],
)
async def test_a_bare_host_gets_https_on_pages_and_in_the_api(
    as_ada: AsyncClient, typed: str, kept: str
) -> None:
    assert (await _send(as_ada, destination=typed)).status_code == 303
    assert (await _newest(as_ada))["destination"] == kept

    made = await as_ada.post("/api/v1/links", json={"destination": typed})
    assert made.json()["destination"] == kept
    changed = await as_ada.patch(f"/api/v1/links/{made.json()['id']}", json={"destination": typed})
    assert changed.json()["version"] == made.json()["version"]


@pytest.mark.parametrize(
    "typed", ["example", "mailto:a@b.example", "javascript:alert(1.5)", "a@b.example"]
)
async def test_what_is_no_host_is_still_refused(as_ada: AsyncClient, typed: str) -> None:
    assert (await _send(as_ada, destination=typed)).status_code == 422


async def test_campaign_fields_are_part_of_the_destination_without_script(
    as_ada: AsyncClient,
) -> None:
    await _send(as_ada, destination="https://example.com/?a=1", utm_source="news", utm_shown="")
    link = await _newest(as_ada)
    assert link["destination"] == "https://example.com/?a=1&utm_source=news"

    form = (await as_ada.get(f"/app/links/{link['id']}/edit")).text
    assert 'name="utm_shown" value="utm_source=news"' in form
    assert 'name="utm_source" type="text" value="news"' in form

    same = {"utm_source": "news", "utm_shown": "utm_source=news"}
    path = f"/app/links/{link['id']}"
    await _send(as_ada, path, destination="https://example.com/", **same)
    assert (await _newest(as_ada))["destination"] == "https://example.com/"
    await _send(as_ada, path, destination="https://example.com/", **same | {"utm_source": "x"})
    assert (await _newest(as_ada))["destination"] == "https://example.com/?utm_source=x"


async def test_a_form_sent_by_script_reports_what_to_copy(as_ada: AsyncClient, rt: Runtime) -> None:
    as_ada.headers.update(HTMX)
    made = await _send(as_ada, destination="example.com", name="plans")

    assert made.status_code == 204
    saved = json.loads(made.headers["HX-Trigger"])["refract:link-saved"]
    link = await _newest(as_ada)
    assert saved == {
        "href": f"/app/links/{link['id']}",
        "message": "Created /plans",
        "copy": f"{rt.settings.public_url}/plans",
        "copied": "Created /plans and copied its short URL",
    }

    changed = await _send(as_ada, f"/app/links/{link['id']}", title="Plans")
    saved = json.loads(changed.headers["HX-Trigger"])["refract:link-saved"]
    assert saved["message"] == "Saved changes to /plans"
    assert saved["undo"] == f"/app/links/{link['id']}/undo"

    refused = await _send(as_ada, destination="https://example.com/", name="plans", title="Kept")
    assert refused.status_code == 422
    assert 'value="Kept"' in refused.text


async def test_the_qr_code_of_a_name_that_is_not_taken_yet(as_ada: AsyncClient) -> None:
    drawn = await as_ada.get("/app/qr", params={"name": "Plans-2"})
    assert drawn.status_code == 200
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert (await as_ada.get("/app/qr", params={"name": "no spaces"})).status_code == 422
    kept = {"name": "no spaces", "exact": "true"}
    assert (await as_ada.get("/app/qr", params=kept)).status_code == 200
    assert (await as_ada.get("/app/qr", params={**kept, "name": "a?b"})).status_code == 422


async def test_the_preview_card_is_filled_in_and_emptied(as_ada: AsyncClient) -> None:
    card = {
        "card_title": " Plans ",
        "card_description": "What is <next>",
        "card_image": "https://cdn.example/plans.png",
    }
    link = {"destination": "https://example.com/", "name": "plans", "noindex": "1"}
    wrong = await _send(as_ada, **link, **card | {"card_image": "http://cdn.example/plans.png"})
    assert wrong.status_code == 422
    assert "Enter a URL that begins with https://." in wrong.text
    assert 'value="http://cdn.example/plans.png"' in wrong.text
    assert (await _send(as_ada, **link, **card)).status_code == 303
    saved = await _newest(as_ada)
    shown = {
        "title": "Plans",
        "description": "What is <next>",
        "image_url": "https://cdn.example/plans.png",
    }
    assert (saved["preview_card"], saved["noindex"]) == (shown, True)
    path = f"/app/links/{saved['id']}"
    form = (await as_ada.get(f"{path}/edit")).text
    assert "What is &lt;next&gt;</textarea>" in form
    assert 'value="https://cdn.example/plans.png"' in form
    details = (await as_ada.get(path, params={"tab": "settings"})).text
    assert '<p class="preview-text" data-live-text>What is &lt;next&gt;</p>' in details
    assert "cdn.example" in details
    assert 'src="https://cdn.example' not in form + details  # no request to other hosts

    await _send(as_ada, path, title="Other fields stay")
    assert (await _newest(as_ada))["preview_card"] == shown
    await _send(as_ada, path, card_title="", card_description="", card_image=" ")
    assert (await _newest(as_ada))["preview_card"] is None
