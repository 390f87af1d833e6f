"""The home page, before and after the first link."""

from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists.access import ListCaller
from tests import make
from tests.client import by_cookie, on_sqlite

pytestmark = on_sqlite
HTML = {"Accept": "text/html"}


async def test_the_first_link_is_offered_to_newcomers_alone(
    rt: Runtime, client: AsyncClient, ada: User, bob: User
) -> None:
    """Who only keeps lists or items is at home without a link."""
    async with rt.db.write() as session:
        newcomer = by_cookie(rt, await make.cookie(session, rt, bob)) | HTML
        reader = by_cookie(rt, await make.cookie(session, rt, ada)) | HTML
        await make.list_of(session, rt, ListCaller(ada.id), "https://example.com/a")

    assert "Create your first link" in (await client.get("/", headers=newcomer)).text
    shown = (await client.get("/", headers=reader)).text
    assert "Create your first link" not in shown
    assert "/app/links/new" in shown


async def test_the_beginning_of_the_app_leads_home(client: AsyncClient) -> None:
    for path in ("/app", "/app/"):
        answer = await client.get(path, headers=HTML)
        assert (answer.status_code, answer.headers["location"]) == (307, "/")
