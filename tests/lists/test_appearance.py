"""Appearance of public lists: palettes and share images."""

import re
import struct
import zlib
from collections import Counter

import pytest
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.lists import card
from refract.lists.appearance import (
    DEFAULT_PALETTE,
    PALETTE_COLOURS,
    PALETTE_NAMES,
    Palette,
    build_monogram,
    choose_ray,
)
from refract.web.static_files import STATIC
from tests import make
from tests.client import by_key, on_sqlite
from tests.lists.clients import code, creator, new_list, published, read

HTML = {"Accept": "text/html"}
A = "https://example.com/a"


def pixels(png: bytes) -> tuple[list[bytes], list[str]]:
    """Return rows of palette indexes, and the colours of the palette."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, parts = 8, {}
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        data = png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            kind + data
        )
        parts[kind] = data
        at += 12 + size
    width, height, depth, colour = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (width, height, depth, colour) == (1200, 630, 8, 3)
    raw = zlib.decompress(parts[b"IDAT"])
    rows = [raw[number * (width + 1) + 1 : (number + 1) * (width + 1)] for number in range(height)]
    shades = [
        f"#{parts[b'PLTE'][place : place + 3].hex()}" for place in range(0, len(parts[b"PLTE"]), 3)
    ]
    return rows, shades


def drawn(
    title: str, palette: Palette = DEFAULT_PALETTE, address: str = "go.example.com/reading"
) -> tuple[list[bytes], list[str]]:
    return pixels(card.render_card(title, address, "12 links", palette))


def inked(rows: list[bytes]) -> list[int]:
    """Return the rows that contain large letters in full ink."""
    return [
        number
        for number, row in enumerate(rows[180:500], 180)
        if row.count(card.SHADE_STEPS - 1) > 3
    ]


@pytest.mark.parametrize("palette", PALETTE_NAMES)
def test_the_picture_wears_the_colours_of_the_page(palette: Palette) -> None:
    rows, shades = drawn("Reading for new people", palette)
    used = Counter(b"".join(rows))

    colours = PALETTE_COLOURS[palette]
    assert shades[used.most_common(1)[0][0]] == colours.paper
    assert [shades[place] for place in dict.fromkeys(rows[-1])] == list(colours.rays)
    assert used[card.SHADE_STEPS - 1] > 5_000, "a title in full ink"
    css = (STATIC / "css/tokens.css").read_text()
    block = (
        css[css.index(f'[data-palette="{palette}"]') :]
        if palette != DEFAULT_PALETTE
        else css[css.index(":root {") :]
    )
    by_day = dict(
        re.findall(
            r"--([a-z]+(?:-\d)?): light-dark\((#[0-9a-f]{6}),", block[: block.index("\n}\n")]
        )
    )
    assert [by_day["page"], *(by_day[f"ray-{ray}"] for ray in range(1, 5))] == [
        colours.paper,
        *colours.rays,
    ]


def test_a_long_title_takes_three_lines_and_never_leaves_the_picture() -> None:
    one, three = (
        inked(drawn("Short")[0]),
        inked(drawn("Reading for everybody who comes new to the team this year, and more " * 4)[0]),
    )
    assert len(one) < 80 < len(three)
    for title in ("W" * 200, "word " * 40, "x"):
        rows, _ = drawn(title)
        assert all(not any(row[:80]) and not any(row[-80:]) for row in rows[:600]), title


def test_letters_that_we_do_not_have_give_way_to_the_address() -> None:
    assert drawn("読書会のお知らせ") == drawn("", address="go.example.com/reading")
    assert drawn("Καλημέρα") == drawn("")
    assert drawn("Party links 🎉") == drawn("Party links")
    assert drawn("Cafe\u0301") == drawn("Café")
    assert drawn("Café ☕\ufe0f") == drawn("Café")
    assert drawn("<script>") != drawn("")
    assert drawn(" \n ") == drawn("")


@on_sqlite
async def test_a_published_list_has_a_picture_that_anybody_may_show(client: AsyncClient) -> None:
    me = creator()
    await published(client, me, "reading", A, title="Reading", palette="forest")

    page, picture = await client.get("/reading", headers=HTML), await client.get("/reading.png")

    assert 'property="og:image" content="http://go.test/reading.png"' in page.text
    assert 'content="summary_large_image"' in page.text
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert picture.headers["cross-origin-resource-policy"] == "cross-origin"
    assert picture.headers["x-content-type-options"] == "nosniff"
    assert PALETTE_COLOURS["forest"].paper in pixels(picture.content)[1]
    assert (await client.get("/reading.png?edition=1")).content == picture.content
    draft = await new_list(client, me, A)
    await client.post(f"/api/v1/lists/{draft['id']}/slug", headers=me, json={"slug": "not-yet"})
    for absent in ("/reading.png?edition=2", "/not-yet.png", "/reading.png/x", "/nobody.png"):
        assert (await client.get(absent)).status_code == 404, absent


@on_sqlite
async def test_colours_are_chosen_in_the_draft_and_go_into_every_edition(
    client: AsyncClient,
) -> None:
    me = creator() | HTML
    draft = await new_list(client, me, A, title="Reading")
    assert draft["palette"] == DEFAULT_PALETTE
    path = f"/app/lists/{draft['id']}"
    page = (await client.get(path, headers=me)).text
    assert re.findall(r'name="palette" value="(\w+)" form="details" checked', page) == [
        DEFAULT_PALETTE
    ]

    assert (
        await client.post(path, headers=me, data={"title": "Reading", "palette": "plum"})
    ).status_code == 303
    assert (await read(client, me, draft["id"]))["palette"] == "plum"
    assert (
        await client.post(path, headers=me, data={"title": "Without colours"})
    ).status_code == 303
    assert (await read(client, me, draft["id"]))["palette"] == "plum"
    wrong = await client.post(path, headers=me, data={"title": "Reading", "palette": "plaid"})
    assert wrong.status_code == 422
    assert (
        code(
            await client.patch(
                f"/api/v1/lists/{draft['id']}", headers=me, json={"palette": "plaid"}
            )
        )[0]
        == 422
    )

    await client.post(f"{path}/publish", headers=me, data={"slug": "reading"})
    assert (
        '<html lang="en" dir="ltr" data-palette="plum">'
        in (await client.get("/reading", headers=HTML)).text
    )
    assert (await client.get("/api/v1/public/lists/reading")).json()["palette"] == "plum"
    edition = (await client.post(f"/api/v1/lists/{draft['id']}/editions", headers=me)).json()
    assert edition["palette"] == "plum"
    cleared = await client.patch(
        f"/api/v1/lists/{edition['id']}", headers=me, json={"palette": None}
    )
    assert cleared.json()["palette"] == DEFAULT_PALETTE


@on_sqlite
async def test_a_draft_is_previewed_as_others_will_see_it_and_by_its_maker_alone(
    client: AsyncClient,
) -> None:
    me = creator() | HTML
    draft = await new_list(client, me, A, title="Reading", palette="clay")
    path = f"/app/lists/{draft['id']}/preview"

    page = await client.get(path, headers=me)

    assert page.status_code == 200
    assert 'data-palette="clay"' in page.text
    assert f'class="list-page-link" href="{A}"' in page.text
    assert "noindex" in page.text
    assert "og:image" not in page.text
    assert f'href="/app/lists/{draft["id"]}#publish"' in page.text
    assert (await client.get(path, headers=creator() | HTML)).status_code == 404
    assert (
        await client.get(f"/app/lists/{(await new_list(client, me))['id']}/preview", headers=me)
    ).status_code == 200
    await client.post(f"/api/v1/lists/{draft['id']}/publish", headers=me, json={"slug": "reading"})
    assert (await client.get(path, headers=me)).headers["location"] == "/reading?edition=1"


@pytest.mark.parametrize(
    ("title", "host", "letters"),
    [
        ("Site Reliability Engineering", "sre.google", "SR"),
        ("SQLite", "www.sqlite.org", "Sq"),
        ("読書", "example.jp", "読書"),
        (None, "blog.example.co.uk", "Ex"),
        (None, "sub.example.com", "Ex"),
        ("🎉", "example.com", "Ex"),
        (None, "10.0.0.12", "12"),
        (None, "10.0.0.113", "13"),
        (None, "[2001:db8::7f]", "7f"),
        (None, "localhost", "Lo"),
        (None, "", ""),
    ],
)
def test_a_tile_shows_letters_that_tell_pages_apart(
    title: str | None, host: str, letters: str
) -> None:
    assert build_monogram(title, host) == letters


def test_pages_of_a_site_share_a_colour() -> None:
    assert choose_ray("www.example.com") == choose_ray("example.com")
    assert {choose_ray(f"{number}.example") for number in range(50)} == {1, 2, 3, 4}


async def test_the_author_is_shown_by_choice_and_never_an_email_address(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
        user = await session.get_one(User, ada.id)
        user.nickname, user.display_name = None, "ada@example.com"
    await published(client, key, "silent", A, title="Silent")
    await published(client, key, "signed", A, title="Signed", shows_author=True)

    async def authors() -> list[str | None]:
        paths = [f"/api/v1/public/lists/{slug}" for slug in ("silent", "signed")]
        return [(await client.get(path)).json()["author"] for path in paths]

    assert await authors() == [None, None]
    assert "ada@example.com" not in (await client.get("/signed", headers=HTML)).text
    async with rt.db.write() as session:
        (await session.get_one(User, ada.id)).nickname = "Ada <L>"
    assert await authors() == [None, "Ada <L>"]
    assert "By Ada &lt;L&gt;" in (await client.get("/signed", headers=HTML)).text
    assert "By Ada" not in (await client.get("/silent", headers=HTML)).text
    assert "By Ada &lt;L&gt;" in (await client.get("/signed?embed", headers=HTML)).text


async def test_what_the_author_wrote_about_themselves_stands_with_the_name(
    client: AsyncClient, rt: Runtime, ada: User
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
        user = await session.get_one(User, ada.id)
        user.nickname, user.bio = "Ada", "Engines & <em>numbers</em>"
    await published(client, key, "silent", A, title="Silent")
    await published(client, key, "signed", A, title="Signed", shows_author=True)

    shown = (await client.get("/signed", headers=HTML)).text

    assert "Engines &amp; &lt;em&gt;numbers&lt;/em&gt;" in shown
    assert "Engines" not in (await client.get("/silent", headers=HTML)).text


async def test_layout_and_cover_are_chosen_and_go_into_every_edition(client: AsyncClient) -> None:
    me = creator()
    chosen = {"layout": "cards", "cover": "waves"}
    made = await published(client, me, "reading", A, **chosen)

    page = (await client.get("/reading", headers=HTML)).text
    edition = (await client.post(f"/api/v1/lists/{made['id']}/editions", headers=me)).json()
    cleared = await client.patch(
        f"/api/v1/lists/{edition['id']}", headers=me, json={"layout": None, "cover": None}
    )

    assert "list-page-entries list-page-cards" in page
    assert 'class="cover list-page-cover"' in page
    assert {name: edition[name] for name in chosen} == chosen
    assert (cleared.json()["layout"], cleared.json()["cover"]) == ("list", "none")
    wrong = await client.patch(
        f"/api/v1/lists/{edition['id']}", headers=me, json={"cover": "https://example.com/a.png"}
    )
    assert code(wrong) == (422, "VALIDATION_FAILED")
