"""Decoding within limits, and bytes to text."""

import gzip
import random

import pytest

from refract.core.net import BadAnswer, FetchedPage, FetchLimits, TooLarge, Unreachable
from refract.core.net.charset import _BY_LABEL, decode_html
from refract.core.net.fetcher import ResponseBody

SMALL = FetchLimits(decoded=10_000, ratio=10, ratio_from=1_000)
NOISE = random.Random(1).randbytes(20_000)


def _read(
    data: bytes, encoding: str = "", *, enough: int | None = None, step: int = 7
) -> ResponseBody:
    body = ResponseBody(encoding, SMALL, enough)
    for start in range(0, len(data), step):
        if not body.is_full:
            body.feed(data[start : start + step])
    return body


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("", bytes), ("identity", bytes), ("gzip", gzip.compress), ("x-gzip", gzip.compress)],
)
@pytest.mark.parametrize("size", [0, 1, 999, 9_999, 10_000])
def test_what_fits_arrives_whole(encoding: str, pack: type[bytes], size: int) -> None:
    body = _read(pack(NOISE[:size]), encoding)

    assert body.finish() == NOISE[:size]
    assert not body.truncated


@pytest.mark.parametrize(("encoding", "pack"), [("", bytes), ("gzip", gzip.compress)])
def test_one_byte_more_is_too_large(encoding: str, pack: type[bytes]) -> None:
    with pytest.raises(TooLarge):
        _read(pack(NOISE[:10_001]), encoding, step=4096)


@pytest.mark.parametrize(("encoding", "pack"), [("", bytes), ("gzip", gzip.compress)])
@pytest.mark.parametrize("enough", [1, 500, 9_999, 10_000, 50_000])
def test_enough_cuts_instead(encoding: str, pack: type[bytes], enough: int) -> None:
    body = _read(pack(NOISE), encoding, enough=enough, step=3000)

    assert body.truncated
    assert body.finish() == NOISE[: min(enough, 10_000)]


def test_a_small_page_may_shrink_a_lot_and_a_large_one_may_not() -> None:
    assert len(_read(gzip.compress(b" " * 1_000), "gzip").finish()) == 1_000
    with pytest.raises(TooLarge):
        _read(gzip.compress(b" " * 9_000), "gzip")


def test_an_empty_compressed_body_is_an_empty_body() -> None:
    assert ResponseBody("gzip", SMALL, None).finish() == b""


@pytest.mark.parametrize(
    "encoding", ["br", "deflate", "zstd", "gzip, gzip", "gzip;q=1", "compress", "gzipped"]
)
def test_what_was_not_asked_for_is_not_decoded(encoding: str) -> None:
    with pytest.raises(BadAnswer):
        ResponseBody(encoding, SMALL, None)


def test_broken_and_unfinished_gzip() -> None:
    with pytest.raises(BadAnswer):
        _read(b"<html>not compressed at all</html>", "gzip")
    with pytest.raises(Unreachable):
        _read(gzip.compress(NOISE[:500])[:-9], "gzip").finish()


@pytest.mark.parametrize(
    ("body", "declared", "text"),
    [
        ("Grüße".encode(), "utf-8", "Grüße"),
        ("Grüße".encode("latin-1"), "ISO-8859-1", "Grüße"),
        ("“quoted”".encode("cp1252"), "iso-8859-1", "“quoted”"),
        ("日本".encode("cp932"), "Shift_JIS", "日本"),
        ("漢字".encode("gb18030"), "gb2312", "漢字"),
        ("Привет".encode("cp1251"), "windows-1251", "Привет"),
        (b"\xef\xbb\xbf" + "Grüße".encode(), "iso-8859-1", "Grüße"),
        ("\ufeffGrüße".encode("utf-16-le"), None, "Grüße"),
        ("\ufeffGrüße".encode("utf-16-be"), "utf-8", "Grüße"),
        ("Grüße".encode(), None, "Grüße"),
        ("Grüße".encode("latin-1"), None, "Grüße"),
        ("Grüße".encode("latin-1"), "utf-8", "Gr\ufffd\ufffde"),
        ("Grüße".encode(), "no-such-charset", "Grüße"),
        (b'<meta charset="koi8-r">' + "мир".encode("koi8-r"), None, '<meta charset="koi8-r">мир'),
        (
            b"<meta http-equiv=x content='text/html; charset=big5'>" + "中".encode("big5"),
            None,
            "<meta http-equiv=x content='text/html; charset=big5'>中",
        ),
        (b'<meta charset="utf-16">' + "ü".encode(), None, '<meta charset="utf-16">ü'),
        (b"a\\x41-", "unicode_escape", "a\\x41-"),
        (b"abc-123", "punycode", "abc-123"),
        (b"+AGE-", "utf-7", "+AGE-"),
        (b"nop", "rot13", "nop"),
    ],
)
def test_text_is_read_as_browsers_read_it(body: bytes, declared: str | None, text: str) -> None:
    assert decode_html(body, declared) == text


@pytest.mark.parametrize("label", sorted(_BY_LABEL))
def test_every_label_has_a_codec_that_never_fails(label: str) -> None:
    assert decode_html(b"plain " + bytes(range(128, 256)), label).startswith(
        "plain "
    ) or label.startswith("utf-16")


def test_a_page_cut_within_a_character_keeps_its_charset() -> None:
    cut = "Grüße".encode()[:3]

    assert decode_html(cut, None, whole=False) == "Gr"
    assert (
        FetchedPage("http://x.test/", 200, {"content-type": "text/html"}, cut, truncated=True).text
        == "Gr"
    )


def test_a_page_knows_its_type_and_charset() -> None:
    page = FetchedPage(
        "http://x.test/",
        200,
        {"content-type": 'Text/HTML ; Charset="windows-1251"'},
        "мир".encode("cp1251"),
    )

    assert page.content_type == "text/html"
    assert page.text == "мир"
    assert FetchedPage("http://x.test/", 200, {}, b"").content_type == ""
