"""QR codes: the image contains the modules of the code, in every format and size."""

import re
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
import segno

from refract.core.clock import ManualClock
from refract.core.runtime import Runtime
from refract.redirect import qr
from refract.redirect.errors import QrSizeTooSmall, UrlTooLongForQr
from refract.web import render_cache
from refract.web.render_cache import RenderCache
from tests.client import on_sqlite
from tests.conftest import START
from tests.loop_cpu import measure_loop_cpu
from tests.redirect.parts import link
from tests.redirect.test_asgi import World

URL = "http://go.test/road-map"


def pixels(png: bytes) -> list[str]:
    """Return the rows of a one-bit grey PNG as text, `#` for black. Verifies checksums."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, size = 8, b"", (0, 0)
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(
            kind + body
        )
        if kind == b"IHDR":
            width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", body)
            assert (depth, colour, rest) == (1, 0, [0, 0, 0])
            size = (width, height)
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    raw, stride = zlib.decompress(data), (size[0] + 7) // 8 + 1
    assert len(raw) == stride * size[1]
    rows = [raw[start : start + stride] for start in range(0, len(raw), stride)]
    assert all(row[0] == 0 for row in rows)
    return [
        "".join(f"{byte:08b}" for byte in row[1:])[: size[0]].replace("0", "#").replace("1", ".")
        for row in rows
    ]


def modules(rows: list[str], count: int) -> list[list[int]]:
    """Return the code in an image: located by its dark square, read at the centre of modules."""
    dark = [number for number, row in enumerate(rows) if "#" in row]
    first, scale = dark[0], (dark[-1] - dark[0] + 1) // count
    left = min(row.index("#") for row in rows if "#" in row)
    middle = scale // 2
    return [
        [
            int(rows[first + scale * down + middle][left + scale * right + middle] == "#")
            for right in range(count)
        ]
        for down in range(count)
    ]


@pytest.mark.parametrize("size", [64, 65, 100, 127, 512, 513, 2048])
def test_png_has_exactly_the_size_and_shows_the_code(size: int) -> None:
    code = segno.make_qr(URL, error="m", boost_error=False)
    rows = pixels(qr.png(URL, size))
    wanted = [list(row) for row in code.matrix]

    assert len(rows) == size
    assert {len(row) for row in rows} == {size}
    assert modules(rows, len(wanted)) == wanted
    quiet = qr.QUIET_ZONE * (size // (len(wanted) + 2 * qr.QUIET_ZONE))
    assert all("#" not in row for row in rows[:quiet] + rows[-quiet:])
    assert all(not row[:quiet].strip(".") and not row[-quiet:].strip(".") for row in rows)


def test_svg_draws_the_same_modules() -> None:
    text = qr.render_svg(URL).decode()
    wanted = [list(row) for row in segno.make_qr(URL, error="m", boost_error=False).matrix]
    count = len(wanted)
    drawn = [[0] * count for _ in range(count)]
    path = re.search(r'stroke="#000" d="([^"]+)"', text)
    assert path is not None
    x = y = 0.0
    for command, numbers in re.findall(r"([Mmh])([-\d. ]+)", path[1]):
        values = [float(number) for number in numbers.split()]
        if command == "M":
            x, y = values
        elif command == "m":
            x, y = x + values[0], y + values[1]
        else:
            for step in range(int(values[0])):
                drawn[int(y) - qr.QUIET_ZONE][int(x) + step - qr.QUIET_ZONE] = 1
            x += values[0]

    assert drawn == wanted
    assert "<script" not in text
    assert "style" not in text


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(QrSizeTooSmall, match="at least 77 pixels"):
        qr.png("http://go.test/" + "x" * 280, 64)
    with pytest.raises(UrlTooLongForQr):
        qr.render_svg("x" * (qr.MAX_TEXT + 1))


async def test_formats_over_http(tmp_path: Path) -> None:
    world = World(ManualClock(START))
    world.lookup.add(link("road-map", "https://example.com/"), link("gh", "https://gh.example/{1}"))
    async with world.serving(tmp_path) as connect:
        wire = await connect()
        svg, png = (
            await wire.ask("/Road_Map.qr"),
            await wire.ask("/road-map.QR?format=png&size=100"),
        )
        extra = await wire.ask("/gh.qr/core?format=PNG")
        assert svg.header("content-type") == "image/svg+xml"
        assert svg.body == qr.render_svg(URL)
        assert svg.header("cache-control") == "private, max-age=300"
        assert png.header("content-type") == "image/png"
        assert png.body == qr.png(URL, 100)
        assert extra.body == qr.png("http://go.test/gh/core", 512)
        for wrong in (
            "size=63",
            "size=2049",
            "size=-1",
            "size=1e3",
            "size=",
            "size=99999999999999999999",
            "format=gif",
            "size=%D9%A1%D9%A2%D9%A3",
        ):
            refused = await wire.ask(
                f"/road-map.qr?format=png&{wrong}" if "size" in wrong else f"/road-map.qr?{wrong}"
            )
            assert refused.status == 422
            assert "64 to 2048" in refused.json["detail"]
        assert (await wire.ask("/road-map.qr/%0a")).status == 404
        dense = await wire.ask(f"/gh.qr/{'x' * 250}?format=png&size=64")
        assert (dense.status, dense.json["code"]) == (422, "QR_SIZE_TOO_SMALL")
        assert "at least 73 pixels" in dense.json["detail"]
    assert world.clicks == []


async def test_codes_are_drawn_outside_of_the_loop_kept_and_limited(tmp_path: Path) -> None:
    """The finding: drawing blocked the event loop for up to 150 ms a request, without a limit."""
    world = World(ManualClock(START))
    world.lookup.add(link("gh", "https://gh.example/{1}"))
    async with world.serving(tmp_path, renders_per_minute=9) as connect:
        wire = await connect()
        long = await wire.ask(f"/gh.qr/{'x' * 300}?format=png&size=2048")
        assert (long.status, long.json["code"]) == (422, "URL_TOO_LONG_FOR_QR")
        assert (await wire.ask("/gh.qr/0")).status == 200
        with measure_loop_cpu() as cpu:
            for number in range(1, 9):
                assert (
                    await wire.ask(f"/gh.qr/{str(number) * 270}?format=png&size=2048")
                ).status == 200
            refused = await wire.ask("/gh.qr/more")
            again = await wire.ask("/gh.qr/0")
        cpu.assert_below()
        assert (refused.status, again.status) == (429, 200), "what is kept costs nothing"
        assert int(refused.header("retry-after")) > 0
        world.clock.advance(60)
        assert (await wire.ask("/gh.qr/more")).status == 200


@on_sqlite
async def test_images_are_kept_within_bounds(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_cache, "MAX_CACHED_IMAGES", 3)
    kept = rt.singleton(RenderCache)
    echo = replace(qr.DRAW_SVG, function="builtins:bytes")
    for text in ("a", "b", "c", "a", "d"):
        assert await kept.render(echo, text, "net") == text.encode()
    assert [key[1] for key in kept._images] == ["c", "a", "d"]

    monkeypatch.setattr(render_cache, "MAX_CACHED_BYTES", 5)
    await kept.render(echo, "long", "net")
    assert [key[1] for key in kept._images] == ["d", "long"]
    assert kept._size == 5


async def test_an_endless_path_is_refused_before_anything_is_made_of_it(tmp_path: Path) -> None:
    """The finding: sixty kilobytes after a go link cost 38 ms each."""
    world = World(ManualClock(START))
    world.lookup.add(link("gh", "https://gh.example/{*}"))
    async with world.serving(tmp_path) as connect:
        wire = await connect()
        assert (await wire.ask(f"/gh/{'x' * 5000}")).status == 302
        with measure_loop_cpu() as cpu:
            refused = await wire.ask(f"/gh/{'%41/' * 15_000}")
        cpu.assert_below()
        assert (refused.status, refused.json["code"]) == (414, "PATH_TOO_LONG")
    assert len(world.clicks) == 1
