"""Redirects as bytes."""

import pytest

from refract.redirect import responses


@pytest.mark.parametrize(
    ("status", "line", "cache"),
    [
        (301, b"301 Moved Permanently", b"private, max-age=30"),
        (302, b"302 Found", b"private, no-store"),
        (307, b"307 Temporary Redirect", b"private, no-store"),
        (308, b"308 Permanent Redirect", b"private, max-age=30"),
    ],
)
def test_the_whole_answer(status: int, line: bytes, cache: bytes) -> None:
    assert responses.render_redirect(status, b"https://example.com/", 1_700_000_000.0) == (
        b"HTTP/1.1 "
        + line
        + b"\r\nlocation: https://example.com/\r\ncache-control: "
        + cache
        + b"\r\ncontent-length: 0\r\nx-content-type-options: nosniff\r\nreferrer-policy:"
        b" strict-origin-when-cross-origin\r\ncontent-security-policy: default-src 'none';"
        b" frame-ancestors 'none'\r\ndate: Tue, 14 Nov 2023 22:13:20 GMT\r\n\r\n"
    )


def test_the_headers_for_asgi_are_those_of_the_lane() -> None:
    lines = responses.render_redirect(308, b"https://example.com/x", 0.0).split(b"\r\n")[
        1:-3
    ]  # without the date and the blank line

    assert [
        b"%b: %b" % pair for pair in responses.build_redirect_headers(308, b"https://example.com/x")
    ] == lines


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"https://a/\r\nset-cookie: x",
        b"https://a/ b",
        b"https://a/\x00",
        b"https://a/\x7f",
        b"https://a/\xe4",
        b"a\n",
    ],
)
def test_a_location_that_could_split_the_answer_is_refused(bad: bytes) -> None:
    with pytest.raises(ValueError, match="visible ASCII"):
        responses.build_head(302, bad)


@pytest.mark.parametrize("status", [200, 300, 303, 304, 404])
def test_other_statuses_are_no_redirects_of_ours(status: int) -> None:
    with pytest.raises(ValueError, match="not one of the redirects"):
        responses.build_head(status, b"https://example.com/")
