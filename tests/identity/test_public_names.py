"""Names that other users see.

Security finding 15: owners without a name were shown by their email address to everyone signed in.
"""

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import UNNAMED_USER, User
from tests import make
from tests.client import by_cookie, by_key, on_sqlite

ADDRESS = "noname.private@example.com"


@pytest.mark.parametrize(
    ("nickname", "display_name", "shown"),
    [
        ("Ada", "Ada Lovelace", "Ada"),
        (None, "Ada Lovelace", "Ada Lovelace"),
        (None, "", UNNAMED_USER),
        (None, ADDRESS, UNNAMED_USER),  # some providers fill the name with the address
        (None, f" {ADDRESS.upper()} ", UNNAMED_USER),
        (None, "other@example.org", UNNAMED_USER),
        ("@ada", "", "@ada"),
    ],
)
def test_a_name_is_never_an_address(nickname: str | None, display_name: str, shown: str) -> None:
    assert User(email=ADDRESS, nickname=nickname, display_name=display_name).public_name == shown


@on_sqlite
@pytest.mark.parametrize("display_name", ["", ADDRESS])
async def test_colleagues_see_no_address(
    rt: Runtime, client: AsyncClient, display_name: str
) -> None:
    async with rt.db.write() as session:
        owner = await make.person(session, rt, "quiet", email=ADDRESS, display_name=display_name)
        other = await make.person(session, rt, "eve")
        link = await make.link(session, rt, owner, name="handbook", visibility="public")
        key, cookie = (
            by_key(await make.key(session, rt, other)),
            by_cookie(rt, await make.cookie(session, rt, other)),
        )

    for path in (f"/links/{link.id}", f"/links/{link.id}/owners", "/links?owner=public"):
        answer = await client.get(f"/api/v1{path}", headers=key)
        assert answer.status_code == 200
        assert UNNAMED_USER in answer.text
        assert ADDRESS not in answer.text
    for path in (f"/app/links/{link.id}", "/app/links?owner=public", "/handbook+"):
        answer = await client.get(path, headers=cookie | {"Accept": "text/html"})
        assert answer.status_code == 200
        assert ADDRESS not in answer.text


@on_sqlite
async def test_an_account_without_a_name_has_its_pages(rt: Runtime, client: AsyncClient) -> None:
    async with rt.db.write() as session:
        quiet = await make.person(session, rt, "quiet", email=ADDRESS, display_name="")
        cookie = by_cookie(rt, await make.cookie(session, rt, quiet)) | {"Accept": "text/html"}

    for path in ("/", "/app/settings"):
        answer = await client.get(path, headers=cookie)
        assert answer.status_code == 200
        assert ADDRESS in answer.text  # to oneself
