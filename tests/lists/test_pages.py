"""Pages of lists without JavaScript: forms work with and without an account and keep input."""

import re
import uuid
from urllib.parse import urlsplit

from httpx import AsyncClient, Response
from sqlalchemy import select, update

from refract.clicks.ingest.ingester import Ingester
from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists.models import ListEntry
from refract.web import csrf
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.lists.clients import creator, new_list, published, read

pytestmark = on_sqlite
HTML = {"Accept": "text/html"}
A, B = "https://example.com/a", "https://example.com/b"


def _at(response: Response) -> str:
    assert response.status_code == 303, response.text
    return urlsplit(response.headers["location"]).path


async def test_a_stranger_starts_a_list_from_the_landing_page_on(
    client: AsyncClient, rt: Runtime
) -> None:
    assert 'href="/app/lists"' in (await client.get("/", headers=HTML)).text
    start = await client.get("/app/lists", headers=HTML)
    assert start.status_code == 200
    assert "Sign in" in start.text

    made = await client.post(
        "/app/lists", headers=HTML, data={"title": "Reading", "urls": f"{A}\n\n  {B} example.com/c"}
    )

    token = re.search(r"refract_creator=([0-9a-f-]+)", made.headers["set-cookie"])
    assert token
    mine = creator(token[1]) | HTML
    page = await client.get(_at(made), headers=mine)
    assert ">Reading</h1>" in page.text
    assert [
        one["url"] for one in (await read(client, mine, _at(made).split("/")[-1]))["entries"]
    ] == [A, B, "https://example.com/c"]
    assert "refract_creator" in page.headers["set-cookie"]  # good for another 30 days
    assert (await client.get(_at(made), headers=creator() | HTML)).status_code == 404


async def test_forms_of_a_creator_are_bound_to_the_cookie(client: AsyncClient, rt: Runtime) -> None:
    token = str(uuid.uuid4())
    found = await new_list(client, creator(token), A)
    cookie = creator(token, proven=False)
    page = await client.get(f"/app/lists/{found['id']}", headers=cookie | HTML)
    shown = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert shown
    path, form = f"/app/lists/{found['id']}", {"title": "Mine"}

    bare = await client.post(path, headers=cookie, data=form)
    foreign = await client.post(
        path, headers=cookie, data=form | {"csrf": csrf.make_token(rt, str(uuid.uuid4()))}
    )
    own = await client.post(path, headers=cookie, data=form | {"csrf": shown[1]})

    assert [response.status_code for response in (bare, foreign, own)] == [403, 403, 303]
    assert (await read(client, cookie, found["id"]))["title"] == "Mine"


async def test_the_whole_way_by_forms(client: AsyncClient) -> None:
    me = creator() | HTML
    found = await new_list(client, me, A, B)
    path, (one, two) = f"/app/lists/{found['id']}", [entry["id"] for entry in found["entries"]]

    async def order() -> list[str]:
        return [entry["id"] for entry in (await read(client, me, found["id"]))["entries"]]

    _at(await client.post(f"{path}/entries/{one}/down", headers=me))
    assert await order() == [two, one]
    _at(await client.post(f"{path}/entries/{one}/up", headers=me))
    _at(await client.post(f"{path}/entries/{one}/up", headers=me))  # at the top it stays
    assert await order() == [one, two]
    assert (
        await client.post(f"{path}/order", headers=me, data={"order": f"{two},{one}"})
    ).status_code == 204
    assert (await client.post(f"{path}/order", headers=me, data={"order": two})).status_code == 409
    assert await order() == [two, one]
    _at(await client.post(f"{path}/entries/{two}/remove", headers=me))
    assert await order() == [one]
    _at(await client.post(path, headers=me, data={"title": "Reading", "description": "About it"}))
    named = {"title": "Reading", "slug": "reading", "has_name": "1"}
    _at(await client.post(path, headers=me, data=named))
    assert (await read(client, me, found["id"]))["slug"] == "reading"
    _at(await client.post(f"{path}/publish", headers=me, data={"slug": "reading"}))
    page = await client.get(path, headers=me)
    assert "http://go.test/reading" in page.text
    edition = _at(await client.post(f"{path}/editions", headers=me))
    assert "Publishing replaces" in (await client.get(edition, headers=me)).text
    _at(await client.post(f"{edition}/publish", headers=me))
    assert (await client.get("/reading?edition=1", headers=me)).status_code == 200
    assert _at(await client.post(f"{edition}/delete", headers=me)) == "/app/lists"
    assert (await client.get("/reading", headers=me)).status_code == 404


async def test_what_cannot_be_added_stays_in_the_box_with_its_reason(client: AsyncClient) -> None:
    me = creator() | HTML
    found = await new_list(client, me)

    page = await client.post(
        f"/app/lists/{found['id']}/entries", headers=me, data={"urls": f"{A}\nexmaple\n{B}"}
    )

    assert page.status_code == 422
    assert re.search(r"<textarea[^>]*>exmaple</textarea>", page.text)
    assert "The URL must start with" in page.text
    assert len((await read(client, me, found["id"]))["entries"]) == 2
    again = await client.post("/app/lists", headers=me, data={"title": "x" * 201, "urls": A})
    assert again.status_code == 422
    assert A in again.text
    many = await client.post(
        f"/app/lists/{found['id']}/entries", headers=me, data={"urls": "\n".join([A] * 201)}
    )
    assert many.status_code == 422
    assert "at most 200 URLs" in many.text


async def test_a_refusal_shows_the_page_again(client: AsyncClient) -> None:
    me = creator() | HTML
    await published(client, creator(), "reading", A)
    found = await new_list(client, me, A)
    path = f"/app/lists/{found['id']}"

    for step in ("", "/publish"):
        form = {"slug": "reading", "has_name": "1"}
        refused = await client.post(f"{path}{step}", headers=me, data=form)
        assert refused.status_code == 409
        assert "already in use" in refused.text
        assert 'value="reading"' in refused.text
    empty = await new_list(client, me)
    assert (await client.post(f"/app/lists/{empty['id']}/publish", headers=me)).status_code == 422
    assert (await client.post(f"{path}/editions", headers=me)).status_code == 409


async def test_a_field_left_as_it_was_is_not_a_persons_word(
    client: AsyncClient, rt: Runtime
) -> None:
    me = creator() | HTML
    found = await new_list(client, me, A)
    entry = found["entries"][0]["id"]
    path = f"/app/lists/{found['id']}/entries/{entry}"

    await client.post(
        path,
        headers=me,
        data={"title": "", "title_before": "", "description": "Mine", "description_before": ""},
    )

    async with rt.db.read() as session:
        row = (await session.scalars(select(ListEntry))).one()
    assert (row.title_by_hand, row.description_by_hand, row.description) == (False, True, "Mine")


async def test_news_replace_what_waited_and_ask_on_for_the_rest(
    client: AsyncClient, rt: Runtime
) -> None:
    me = creator() | HTML
    found = await new_list(client, me, A, B)
    one, two = [int(entry["id"]) for entry in found["entries"]]
    page = (await client.get(f"/app/lists/{found['id']}", headers=me)).text
    assert f'hx-get="/app/lists/{found["id"]}/news?waiting={one},{two}"' in page
    async with rt.db.write() as session:
        await session.execute(
            update(ListEntry)
            .where(ListEntry.id == one)
            .values(fetch_status="success", title="Found <it>")
        )

    news = (
        await client.get(
            f"/app/lists/{found['id']}/news", headers=me, params={"waiting": f"{one},{two}"}
        )
    ).text

    assert f'hx-swap-oob="outerHTML:#entry-{one}"' in news
    assert "Found &lt;it&gt;" in news
    assert f"news?waiting={two}" in news
    assert f'id="entry-{two}"' not in news
    async with rt.db.write() as session:
        await session.execute(
            update(ListEntry).where(ListEntry.id == two).values(fetch_status="failed")
        )
    last = (
        await client.get(f"/app/lists/{found['id']}/news", headers=me, params={"waiting": str(two)})
    ).text
    assert "hx-trigger" not in last


async def test_availability_in_words(client: AsyncClient) -> None:
    await published(client, creator(), "reading", A)

    async def said(slug: str) -> str:
        return (await client.get("/app/lists/availability", params={"slug": slug})).text

    assert "is available" in await said("books")
    assert "already in use" in await said("reading")
    assert "3 to 40 characters" in await said("ab")
    assert (await said("")).strip() == ""


async def test_signing_in_offers_the_lists_of_this_browser(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    token = str(uuid.uuid4())
    await new_list(client, creator(token), A, title="Before I had an account")
    async with rt.db.write() as session:
        signed_in = by_cookie(rt, await make.cookie(session, rt, ada))
    both = signed_in | HTML | {"Cookie": f"{signed_in['Cookie']}; refract_creator={token}"}
    assert "Before I had an account" in (await client.get("/app/lists", headers=both)).text

    assert _at(await client.post("/app/lists/claim", headers=both)) == "/app/lists"

    page = (await client.get("/app/lists", headers=both)).text
    assert "Add to my account" not in page
    assert "Before I had an account" in page


async def test_the_offer_stands_wherever_somebody_meets_their_list(
    client: AsyncClient, rt: Runtime, ada: User, bob: User
) -> None:
    token = str(uuid.uuid4())
    found = await new_list(client, creator(token), A, title="Before I had an account")
    async with rt.db.write() as session:
        cookies = {one.id: by_cookie(rt, await make.cookie(session, rt, one)) for one in (ada, bob)}
    both = (
        cookies[ada.id] | HTML | {"Cookie": f"{cookies[ada.id]['Cookie']}; refract_creator={token}"}
    )
    path = f"/app/lists/{found['id']}"

    for place in ("/", path):
        page = (await client.get(place, headers=both)).text
        assert "Before I had an account" in page
        assert "Add to my account" in page
    assert "Add to my account" not in (await client.get("/", headers=cookies[bob.id] | HTML)).text
    assert "Add to my account" not in (await client.get(path, headers=creator(token) | HTML)).text

    assert (
        _at(await client.post("/app/lists/claim", headers=both, data={"list_id": found["id"]}))
        == path
    )

    assert "Add to my account" not in (await client.get(path, headers=both)).text
    assert (await client.get(path, headers=cookies[ada.id] | HTML)).status_code == 200
    assert (await client.get(path, headers=creator(token) | HTML)).status_code == 404


async def test_publishing_publishes_what_the_form_shows(client: AsyncClient) -> None:
    me = creator() | HTML
    found = await new_list(client, me, A)
    form = {"has_details": "1", "title": "Typed", "description": "", "palette": "ocean"}

    _at(
        await client.post(
            f"/app/lists/{found['id']}/publish", headers=me, data={**form, "slug": "typed"}
        )
    )

    seen = await read(client, me, found["id"])
    assert (seen["title"], seen["palette"], seen["slug"]) == ("Typed", "ocean", "typed")


async def test_a_form_that_saves_itself_gets_no_page(client: AsyncClient) -> None:
    me = creator() | HTML
    found = await new_list(client, me, A)
    path, entry = f"/app/lists/{found['id']}", found["entries"][0]["id"]
    itself = me | {"X-Autosave": "1"}

    title = await client.post(path, headers=itself, data={"title": "Typed"})
    text = await client.post(
        f"{path}/entries/{entry}", headers=itself, data={"title": "Entry", "title_before": ""}
    )
    long = await client.post(path, headers=itself, data={"title": "x" * 201})

    assert [title.status_code, text.status_code, long.status_code] == [204, 204, 422]
    assert "set-cookie" not in title.headers
    seen = await read(client, me, found["id"])
    assert (seen["title"], seen["entries"][0]["title"]) == ("Typed", "Entry")


async def test_removed_entries_come_back_to_their_place(
    client: AsyncClient, clock: ManualClock
) -> None:
    me = creator() | HTML
    found = await new_list(client, me, A, B, "https://example.com/c")
    ids = [entry["id"] for entry in found["entries"]]
    path = f"/app/lists/{found['id']}/entries"

    async def order() -> list[str]:
        return [entry["id"] for entry in (await read(client, me, found["id"]))["entries"]]

    _at(await client.post(f"{path}/{ids[0]}/remove", headers=me))
    _at(await client.post(f"{path}/{ids[1]}/remove", headers=me))
    assert await order() == [ids[2]]
    back = await client.post(f"/api/v1/lists/{found['id']}/entries/{ids[1]}/restore", headers=me)
    assert back.json()["url"] == B
    _at(await client.post(f"{path}/{ids[0]}/restore", headers=me))
    assert await order() == ids
    twice = await client.post(f"{path}/{ids[0]}/restore", headers=me)
    assert twice.status_code == 409

    _at(await client.post(f"{path}/{ids[0]}/remove", headers=me))
    clock.advance(24 * 3600)
    late = await client.post(f"{path}/{ids[0]}/restore", headers=me)
    assert late.status_code == 409
    assert "Nothing to undo" in late.text


async def test_reasons_of_rejected_urls_stand_on_lines_of_their_own(client: AsyncClient) -> None:
    me = creator() | HTML
    found = await new_list(client, me)

    page = await client.post(
        f"/app/lists/{found['id']}/entries", headers=me, data={"urls": "ftp://a\nftp://b"}
    )

    message = re.search(r'id="field-urls-error">.*?<span>(.*?)</span>', page.text, re.DOTALL)
    assert message is not None
    assert len(message[1].splitlines()) == 2


async def test_its_owner_reads_when_a_list_was_published_and_deleted(
    client: AsyncClient, clock: ManualClock
) -> None:
    me = creator() | HTML
    found = await new_list(client, me, A)
    path = f"/app/lists/{found['id']}"
    _at(await client.post(f"{path}/publish", headers=me, data={"slug": "reading"}))
    assert "Published edition 1" in (await client.get(path, headers=me)).text
    clock.advance(60)
    _at(await client.post(f"{path}/delete", headers=me))

    log = (await client.get(f"/api/v1/lists/{found['id']}/actions", headers=me)).json()["items"]

    assert [(action["event"], action["slug"], action["edition"]) for action in log] == [
        ("delete", "reading", 1),
        ("publish", "reading", 1),
    ]
    stranger = await client.get(f"/api/v1/lists/{found['id']}/actions", headers=creator())
    assert stranger.status_code == 404


async def test_its_owner_sees_views_and_clicks_of_a_list_by_day(
    client: AsyncClient, rt: Runtime
) -> None:
    me = creator() | HTML
    found = await published(client, me, "reading", A)
    browser = HTML | {"User-Agent": "Mozilla/5.0 Firefox/130.0"}
    for _ in range(3):
        await client.get("/reading", headers=browser)
    assert (await client.get("/reading/1", headers=browser)).status_code == 302
    await Ingester(rt).apply_all()

    chart = await client.get(f"/app/lists/{found['id']}/views", headers=me)

    assert "3 views · 1 click in 30 days" in " ".join(chart.text.split())
    days = re.findall(
        r'<th scope="row">[^<]+</th><td[^>]*>(\d+)</td><td[^>]*>(\d+)</td>', chart.text
    )
    assert days == [("0", "0")] * 29 + [("3", "1")]
    stranger = await client.get(f"/app/lists/{found['id']}/views", headers=creator() | HTML)
    assert stranger.status_code == 404
