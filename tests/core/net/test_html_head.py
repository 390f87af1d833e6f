"""The head of a page: what is found, where reading stops, and linear cost of hostile pages.

The finding: one list entry whose page was 810 bytes of compressed `<div>` took 25 s of CPU, one
`<meta>` with 58,000 attributes 6.4 s, both on the event loop.
"""

import time

import pytest

from refract.core.net.html_head import (
    MAX_ATTRIBUTES,
    MAX_MARKUP,
    MAX_OPEN,
    PageTooDeep,
    TooManyAttributes,
    parse_head,
)
from refract.core.net.metadata import PageMetadata, parse_metadata
from tests.hostile_pages import SHAPES

MAX_CPU_SECONDS = 0.1


def title(html: str) -> str | None:
    return parse_head(html).title


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hostile_page_costs_no_more_than_its_length(shape: str) -> None:
    began = time.thread_time()

    try:
        found = parse_metadata(SHAPES[shape], lambda reference: reference)
    except (PageTooDeep, TooManyAttributes):
        found = PageMetadata()

    assert time.thread_time() - began < MAX_CPU_SECONDS
    assert len(found.title or "") <= 200
    assert len(found.description or "") <= 500


def test_what_is_in_a_head_is_found() -> None:
    head = parse_head(
        "<!doctype html><!-- <title>no</title> --><HTML lang=en><Head><meta charset=utf-8>"
        '<script>document.write("<title>no</title>")</script><style>a > b {}</style>'
        "<noscript><meta name=robots content=none></noscript><link rel=icon href=/x>"
        "<TITLE>Tom &amp; <i>Jerry</i></TITLE ><title>two</title>"
        """<meta name='Description' content="a > 'b' &#39;c&#39;"/>"""
        "<meta property = og:title content = Loud >"
        "<meta content=empty><meta name=x name=y content='1' content='2'></head><meta name=late"
        " content=no><body>"
    )

    assert head.title == "Tom & <i>Jerry</i>"
    assert head.metas == [
        {"charset": "utf-8"},
        {"name": "robots", "content": "none"},
        {"name": "Description", "content": "a > 'b' 'c'"},
        {"property": "og:title", "content": "Loud"},
        {"content": "empty"},
        {"name": "x", "content": "1"},
    ]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<svg><title>drawing</title></svg><title>late</title>", "late"),
        ("<math><title>drawing</title></math><title>late</title>", "late"),
        ("<template><title>spare</title></template><title>late</title>", "late"),
        ("<title>never closed", "never closed"),
        ("<title></title><title>two</title>", ""),
        ("<body><title>late</title>", None),
        ("<bodyguard><title>x</title>", "x"),
        ("<head></head><title>late</title>", None),
        ("<header><title>x</title>", "x"),
        ("<!--><title>x</title>", "x"),
        ("<!-- <title>no</title>", None),
        ("<?php <title>no</title> ?><title>x</title>", "x"),
        ("<![CDATA[<title>no</title>]]><title>x</title>", "x"),
        ("a < b <3 <title>x</title>", "x"),
        ("</><title>x</title>", "x"),
        ("<script></script x><title>x</title>", "x"),
        ("<script><!-- </script><title>x</title>", "x"),
        ("<script></scripted></script><title>x</title>", "x"),
        ("<p title='<title>no</title>'><title>x</title>", "x"),
        ("<p title='open <title>no</title>", None),
        ("<img src=a/><title>x</title>", "x"),
        ("<" * 5000 + "title>x", "x"),
    ],
)
def test_where_a_title_is_and_where_it_is_not(html: str, found: str | None) -> None:
    assert title(html) == found


def test_reading_stops_where_no_head_goes_on_but_scripts_are_passed_over() -> None:
    late = "<title>late</title>"

    assert title("<p>" + "x" * MAX_MARKUP + late) is None
    assert title("<p>" + "x" * (MAX_MARKUP - 10) + late) == "late"
    assert (
        title(f"<script>{'x' * 8 * MAX_MARKUP}</script><style>{'x' * 8 * MAX_MARKUP}</style>{late}")
        == "late"
    )


def test_what_only_an_attacker_would_write_is_refused() -> None:
    with pytest.raises(PageTooDeep):
        parse_head("<div>" * (MAX_OPEN + 1))
    with pytest.raises(PageTooDeep):
        parse_head("<div><b></i></div>" * (MAX_OPEN + 1))
    with pytest.raises(TooManyAttributes):
        parse_head(f"<meta{' x' * (MAX_ATTRIBUTES + 1)}>")
    parse_head("<div>" * MAX_OPEN + "</div><div>" * 1000)
    parse_head("<p><li><td><br>" * 1000)
    parse_head(f"<meta{' x' * MAX_ATTRIBUTES}>")
