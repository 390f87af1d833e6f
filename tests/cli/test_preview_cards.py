"""Preview cards on the command line."""

import json

from tests.cli.conftest import Run
from tests.cli.test_links import ok, refused


def test_a_card_is_set_part_by_part_and_removed(run: Run) -> None:
    url = ("https://example.com/", "--name", "plans")
    ok(run("shorten", *url, "--card-title", "Plans", "--card-image", "https://cdn.example/p.png"))

    def read() -> object:
        return json.loads(ok(run("links", "show", "plans", "--json")))["preview_card"]

    image = "https://cdn.example/p.png"
    assert read() == {"title": "Plans", "description": None, "image_url": image}
    ok(run("links", "edit", "plans", "--card-description", "What is next"))
    assert read() == {"title": "Plans", "description": "What is next", "image_url": image}
    shown = ok(run("links", "show", "plans"))
    for text in ("Plans", "What is next", image):
        assert text in shown
    refused(
        run("links", "edit", "plans", "--card-image", "ftp://cdn.example/"), "--card-image", code=2
    )
    told = ok(run("explain", "/plans", "--agent", "Twitterbot/1.0"))
    assert told == "The visitor is a crawler of a chat, and gets the preview card.\n"
    assert ok(run("explain", "/plans")) == "The link decides: https://example.com/\n"
    ok(run("links", "edit", "plans", "--noindex"))
    assert "noindex" in ok(run("links", "show", "plans"))
    ok(run("links", "edit", "plans", "--index"))
    assert "noindex" not in ok(run("links", "show", "plans"))
    parts = ("--card-title", "--card-description", "--card-image")
    ok(run("links", "edit", "plans", *(word for part in parts for word in (part, ""))))
    assert read() is None
