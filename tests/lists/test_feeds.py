"""Feeds of a published list: valid for a feed parser and the schema, safe with any title."""

import json
from datetime import UTC, datetime

import feedparser

from refract.lists.feeds import render_json_feed, render_markdown, render_rss
from refract.lists.schemas import PublicEntry, PublicList

HOSTILE = '<script>alert(1)</script> & "quotes" ]]> \x07 ]( *bold*'
AT = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
# JSON Feed 1.1: what it demands, and the type of everything it knows.
REQUIRED = {"version": str, "title": str, "items": list}
KNOWN = REQUIRED | {"home_page_url": str, "feed_url": str, "description": str}
ITEM_KNOWN = {
    "id": str,
    "url": str,
    "title": str,
    "content_text": str,
    "image": str,
    "date_published": str,
}


def entry(
    position: int,
    title: str | None,
    url: str,
    description: str | None = None,
    image: str | None = None,
    section: str | None = None,
) -> PublicEntry:
    return PublicEntry(
        position=position,
        section=section,
        url=url,
        title=title,
        description=description,
        image=image,
    )


def a_list(
    *entries: PublicEntry,
    title: str | None = "Reading",
    edition: int = 1,
    latest: int = 1,
    author: str | None = None,
) -> PublicList:
    url = "https://go.example/reading" + ("" if edition == latest else f"?edition={edition}")
    return PublicList(
        slug="reading",
        title=title,
        description="For you & me",
        layout="list",
        cover="none",
        author=author,
        palette="cobalt",
        edition=edition,
        latest_edition=latest,
        published_at=AT,
        url=url,
        entries=list(entries),
    )


FULL = a_list(
    entry(1, "First", "https://example.com/1?a=1&b=2", "About one", "https://example.com/1.png"),
    entry(3, HOSTILE, "https://example.com/読書", HOSTILE),
    entry(4, None, "https://example.com/4"),
)


def test_rss_is_read_by_a_feed_parser() -> None:
    found = feedparser.parse(render_rss(FULL, "https://go.example"))

    assert not found.bozo, found.get("bozo_exception")
    assert (found.version, found.feed.title, found.feed.link) == (
        "rss20",
        "Reading",
        "https://go.example/reading",
    )
    assert found.feed.subtitle == "For you & me"
    assert [link.href for link in found.feed.links if link.rel == "self"] == [
        "https://go.example/reading.rss"
    ]
    assert [one.link for one in found.entries] == [entry.url for entry in FULL.entries]
    assert found.entries[0].title == "First"
    assert found.entries[0].published_parsed[:6] == (2026, 3, 14, 15, 9, 26)
    assert found.entries[2].title == "(No title)"
    assert len({one.id for one in found.entries}) == 3
    assert not any(one.guidislink for one in found.entries)
    assert "<script" not in render_rss(FULL, "https://go.example")


def test_json_feed_fits_its_schema() -> None:
    feed = json.loads(render_json_feed(FULL, "https://go.example"))

    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert all(isinstance(feed[name], kind) for name, kind in REQUIRED.items())
    assert all(isinstance(value, KNOWN[name]) for name, value in feed.items())
    for item in feed["items"]:
        assert {"id", "content_text"} <= set(item)  # the two that an item must have
        assert all(isinstance(value, ITEM_KNOWN[name]) for name, value in item.items())
        assert datetime.fromisoformat(item["date_published"]) == AT
    assert feed["feed_url"] == "https://go.example/reading.json"
    assert [item.get("image") for item in feed["items"]] == [
        "https://example.com/1.png",
        None,
        None,
    ]
    assert feed["items"][1]["title"] == HOSTILE


def test_an_older_edition_has_feeds_of_its_own() -> None:
    old = a_list(entry(1, "First", "https://example.com/"), edition=1, latest=3)

    assert (
        json.loads(render_json_feed(old, "https://go.example"))["feed_url"]
        == "https://go.example/reading.json?edition=1"
    )
    assert (
        feedparser.parse(render_rss(old, "https://go.example")).entries[0].id
        == "https://go.example/reading/1?edition=1"
    )


def test_markdown_says_what_it_is_and_no_title_breaks_out() -> None:
    text = render_markdown(FULL, "https://go.example")

    assert text.startswith(
        "# Reading\n\nFor you \\& me\n\n1. [First](<https://example.com/1?a=1&b=2>) – About"
        " one\n2. ["
    )
    assert "\\<script\\>" in text
    assert "\\](" in text
    assert text.count("\n2. ") == 1
    assert render_markdown(a_list(title=None), "https://go.example").startswith("# reading\n")


def test_feeds_and_markdown_know_sections_and_author() -> None:
    found = a_list(
        entry(1, "Before", "https://example.com/1"),
        entry(2, "First", "https://example.com/2", section="Start <here>"),
        entry(3, "Second", "https://example.com/3", section="Start <here>"),
        author="Ada",
    )

    rss = feedparser.parse(render_rss(found, "https://go.example"))
    feed = json.loads(render_json_feed(found, "https://go.example"))
    markdown = render_markdown(found, "https://go.example")

    assert [[tag.term for tag in item.get("tags", [])] for item in rss.entries] == [
        [],
        ["Start <here>"],
        ["Start <here>"],
    ]
    assert [item.get("tags") for item in feed["items"]] == [
        None,
        ["Start <here>"],
        ["Start <here>"],
    ]
    assert feed["authors"] == [{"name": "Ada"}]
    lines = [line for line in markdown.splitlines() if line]
    assert lines[2:6] == [
        "1. [Before](<https://example.com/1>)",
        "## Start \\<here\\>",
        "2. [First](<https://example.com/2>)",
        "3. [Second](<https://example.com/3>)",
    ]
