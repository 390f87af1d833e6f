"""QR codes with a style: a decoder reads them, and colors that scanners fail on are refused."""

import struct
import zlib
from itertools import product
from typing import Any

import numpy as np
import pytest
import zxingcpp
from httpx import AsyncClient

from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.links.export import build_record
from refract.links.models import Link
from refract.links.qr_styles import (
    PLAIN_STYLE,
    QrCorrection,
    QrShape,
    QrStyle,
    find_contrast_problem,
)
from refract.links.queries import load_card
from refract.redirect import qr
from refract.redirect.errors import QrSizeTooSmall
from tests import make
from tests.client import by_cookie, by_key, on_sqlite
from tests.people import ada, as_ada, as_bob, bob

__all__ = ["ada", "as_ada", "as_bob", "bob"]
Headers = dict[str, str]
URLS = ("https://go.example.com/roadmap", f"https://go.example.com/jira/{'PROJ-1234-' * 20}")


def read_pixels(png: bytes) -> Any:
    """Return the grey pixels of a PNG with a palette, or with one bit."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth = struct.unpack(">IIB", png[16:25])
    parts, at = dict[bytes, bytes](), 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        parts[png[at + 4 : at + 8]] = png[at + 8 : at + 8 + length]
        at += 12 + length
    raw = np.frombuffer(zlib.decompress(parts[b"IDAT"]), dtype=np.uint8).reshape(height, -1)[:, 1:]
    if depth == 1:
        return np.unpackbits(raw, axis=1)[:, :width] * 255
    palette = np.frombuffer(parts[b"PLTE"], dtype=np.uint8).reshape(-1, 3)
    return palette.mean(axis=1).astype(np.uint8)[raw]


def decode(pixels: Any) -> list[str]:
    """Return what a scanner reads that does not try inverted colors."""
    found = zxingcpp.read_barcodes(np.pad(pixels, 32, constant_values=255), try_invert=False)
    return [code.text for code in found]


@pytest.mark.parametrize("url", URLS)
def test_a_decoder_reads_every_combination(url: str) -> None:
    colors = (("#000000", "#ffffff"), ("#1d4ed8", "#fff7d6"), ("#c2410c", "#ffffff"))
    shapes: tuple[QrShape, ...] = ("square", "dots")
    corrections: tuple[QrCorrection, ...] = ("L", "H")
    for (color, background), shape, correction, logo, margin in product(
        colors, shapes, corrections, (False, True), (0, 4)
    ):
        style = QrStyle(color, background, margin, correction, shape, logo)
        assert find_contrast_problem(color, background) is None
        png = qr.render_styled_png(url, 480, style)
        assert decode(read_pixels(png)) == [url], style
        assert len(qr.render_styled_svg(url, style)) < qr.DRAW_STYLED_SVG.max_output


@pytest.mark.parametrize("size", [150, 511, 2048])
def test_a_png_has_exactly_its_size(size: int) -> None:
    style = QrStyle(shape="dots", logo=True)
    pixels = read_pixels(qr.render_styled_png(URLS[0], size, style))
    assert pixels.shape == (size, size)
    assert decode(pixels) == [URLS[0]]
    with pytest.raises(QrSizeTooSmall):
        qr.render_styled_png(URLS[1], 64, style)


def test_a_plain_style_draws_the_same_modules_as_no_style() -> None:
    plain = read_pixels(qr.png(URLS[0], 300))
    styled = read_pixels(qr.render_styled_png(URLS[0], 300, PLAIN_STYLE))
    assert (plain == styled).all()


@pytest.mark.parametrize(
    ("color", "background", "words"),
    [
        ("#ffffff", "#000000", "light code on a dark background"),
        ("#888888", "#999999", "can't tell"),
        ("#ffd400", "#ffffff", "can't tell"),
        ("#000000", "#ffffff", None),
        ("#c2410c", "#ffffff", None),
    ],
)
def test_colors_that_scanners_fail_on_are_named(
    color: str, background: str, words: str | None
) -> None:
    problem = find_contrast_problem(color, background)
    assert problem is None if words is None else words in (problem or "")


async def test_a_style_is_kept_with_its_link_its_history_and_its_export(
    rt: Runtime, client: AsyncClient, as_ada: Headers
) -> None:
    new = {"destination": "https://example.com/", "names": ["plan"]}
    blue = {"color": "1D4ED8", "shape": "dots", "correction": "q"}
    made = (
        await client.post("/api/v1/links", headers=as_ada, json=new | {"qr_style": blue})
    ).json()
    assert made["qr_style"] == {
        "color": "#1d4ed8",
        "background": "#ffffff",
        "margin": 4,
        "correction": "Q",
        "shape": "dots",
        "logo": False,
    }
    svg = await client.get("/plan.qr")
    assert svg.content == qr.render_styled_svg(
        made["short_url"], QrStyle("#1d4ed8", correction="Q", shape="dots")
    )
    green = await client.get("/plan.qr?format=png&size=200&color=%2311703f&logo=true&margin=1")
    assert decode(read_pixels(green.content)) == [made["short_url"]]
    assert green.content == qr.render_styled_png(
        made["short_url"], 200, QrStyle("#11703f", "#ffffff", 1, "Q", "dots", logo=True)
    )
    loose = await client.put("/api/v1/me/qr-style", headers=as_ada, json={"logo": 0})
    assert loose.status_code == 422
    for wrong in ("color=red", "margin=11", "shape=stars", "background=%23000000", "logo=maybe"):
        refused = await client.get(f"/plan.qr?{wrong}", headers={"Accept": "application/json"})
        assert (refused.status_code, refused.json()["code"]) == (422, "INVALID_QR_STYLE"), wrong

    url = f"/api/v1/links/{made['id']}"
    light = await client.patch(url, headers=as_ada, json={"qr_style": {"color": "#eeeeee"}})
    assert (light.status_code, light.json()["errors"][0]["field"]) == (422, "qr_style.background")
    cleared = await client.patch(url, headers=as_ada, json={"qr_style": None})
    assert cleared.json()["qr_style"] is None
    (version, _) = (await client.get(f"{url}/history", headers=as_ada)).json()["items"]
    assert version["changes"]["qr_style"]["from"]["color"] == "#1d4ed8"
    undone = await client.post(f"{url}/undo", headers=as_ada)
    assert undone.json()["qr_style"] == made["qr_style"]
    async with rt.db.read() as session:
        card = await load_card(session, await session.get_one(Link, int(made["id"])))
    record = build_record(card, rt.clock.now())
    assert record["qr_style"] == {"color": "#1d4ed8", "correction": "Q", "shape": "dots"}
    again = {"destination": "https://example.com/2", "qr_style": record["qr_style"]}
    copied = await client.post("/api/v1/links", headers=as_ada, json=again)
    assert copied.json()["qr_style"] == made["qr_style"]


async def test_a_default_is_for_links_of_its_user_without_a_style(
    client: AsyncClient, as_ada: Headers, as_bob: Headers
) -> None:
    default = "/api/v1/me/qr-style"
    assert (await client.get(default, headers=as_ada)).json()["color"] == "#000000"
    saved = await client.put(default, headers=as_ada, json={"color": "#1d4ed8"})
    assert saved.json()["color"] == "#1d4ed8"
    for headers, name in ((as_ada, "hers"), (as_ada, "own"), (as_bob, "his")):
        new: dict[str, Any] = {"destination": "https://example.com/", "names": [name]}
        new |= {"qr_style": {}} if name == "own" else {}
        assert (await client.post("/api/v1/links", headers=headers, json=new)).status_code == 201
    drawn = {name: (await client.get(f"/{name}.qr")).text for name in ("hers", "own", "his")}
    assert "#1d4ed8" in drawn["hers"]
    assert "#1d4ed8" not in drawn["own"] + drawn["his"]

    assert (await client.put(default, headers=as_ada, json={})).json()["color"] == "#000000"
    assert "#1d4ed8" not in (await client.get("/hers.qr")).text


@on_sqlite
async def test_the_page_previews_saves_and_resets(
    rt: Runtime, client: AsyncClient, ada: User
) -> None:
    async with rt.db.write() as session:
        key = by_key(await make.key(session, rt, ada))
        browser = by_cookie(rt, await make.cookie(session, rt, ada))
        link = await make.link(session, rt, ada, name="plan")
    page, api = f"/app/links/{link.id}/qr", f"/api/v1/links/{link.id}"
    tried = (await client.get(f"{page}?color=%231d4ed8&shape=dots", headers=browser)).text
    assert "color=%231d4ed8" in tried
    assert (await client.get(api, headers=key)).json()["qr_style"] is None
    faint = {"color": "#ffd400", "background": "#ffffff"}
    refused = await client.post(page, headers=browser, data=faint)
    assert (refused.status_code, "Choose a darker color" in refused.text) == (422, True)

    blue = {"color": "#1d4ed8", "logo": "1", "act": "save"}
    assert (await client.post(page, headers=browser, data=blue)).status_code == 303
    style = (await client.get(api, headers=key)).json()["qr_style"]
    assert (style["color"], style["logo"]) == ("#1d4ed8", True)
    assert (await client.post(page, headers=browser, data={"act": "reset"})).status_code == 303
    assert (await client.get(api, headers=key)).json()["qr_style"] is None
    await client.post(page, headers=browser, data=blue | {"act": "default"})
    assert (await client.get(api, headers=key)).json()["qr_style"] is None
    assert "#1d4ed8" in (await client.get("/plan.qr")).text
