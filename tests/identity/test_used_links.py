"""Pages for someone who has to sign in: why, and how to go on."""

from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.identity.sessions import create_signin_link, use_signin_link
from tests.client import on_sqlite
from tests.people import ada

__all__ = ["ada"]
pytestmark = on_sqlite
PAGE = {"Accept": "text/html"}


async def test_a_used_sign_in_link_leads_to_the_sign_in_page(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        token = (await create_signin_link(session, rt, ada)).rsplit("/", 1)[1]
        await use_signin_link(session, rt, token)
    origin = {"Origin": rt.settings.public_url}
    for answer in (
        await client.get(f"/auth/sign-in/{token}", headers=PAGE),
        await client.post(f"/auth/sign-in/{token}", headers=PAGE | origin),
    ):
        assert answer.status_code == 404
        assert "This sign-in link was already used, or it has expired." in answer.text
        assert "<code>refract signin-link</code>" in answer.text
        assert "`" not in answer.text.partition("<main")[2], "no marks of code"
    program = await client.get(f"/auth/sign-in/{token}")
    assert program.json()["code"] == "SIGN_IN_LINK_EXPIRED"


async def test_a_page_says_that_one_comes_back_to_it(client: AsyncClient) -> None:
    answer = await client.get("/app/links", headers=PAGE)
    assert answer.status_code == 401
    assert "You’ll come right back to it." in answer.text
    assert "API" not in answer.text.partition("<main")[2].partition("</main>")[0]
