"""Request and response bodies: exactly the fields of the specification."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from refract.links.enums import Visibility
from refract.links.schemas import LinkCreate, LinkOut, LinkPatch

GOOD = {"destination": "https://example.com/"}


def test_a_link_is_created_from_these_fields_and_no_others() -> None:
    assert list(LinkCreate.model_fields) == [
        "destination", "names", "domain", "title", "notes", "tags", "redirect_status", "visibility",
        "team", "forward_query", "noindex", "expires_at", "expired_destination", "starts_at",
        "before_destination", "click_limit", "limit_destination", "password", "rules",
        "preview_card", "qr_style", "utm_template", "find_if_exists",
    ]  # fmt: skip
    with pytest.raises(ValidationError, match="extra_forbidden"):
        LinkCreate.model_validate({**GOOD, "slug": "x"})


def test_a_link_is_shown_with_these_fields() -> None:
    assert list(LinkOut.model_fields) == [
        "id", "code", "domain", "short_url", "names", "addresses", "destination", "title",
        "notes", "tags",
        "redirect_status", "visibility", "status", "expires_at", "expired_destination", "starts_at",
        "before_destination", "preview_card", "click_limit", "clicks_left", "limit_destination",
        "qr_style", "created_at", "updated_at",
        "total_clicks", "bot_clicks", "last_clicked_at", "flagged", "flag_reason", "forward_query",
        "noindex", "version", "owners", "teams",
    ]  # fmt: skip


def test_seed_003_what_is_left_out_has_its_default() -> None:
    new = LinkCreate.model_validate(GOOD)
    assert (new.redirect_status, new.names, new.tags, new.forward_query, new.find_if_exists) == (
        302,
        [],
        [],
        False,
        False,
    )
    assert (new.title, new.notes, new.visibility, new.expires_at) == (None, None, None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": "x" * 201},
        {"notes": "x" * 2001},
        {"redirect_status": 303},
        {"redirect_status": "301"},
        {"visibility": "private"},
        {"forward_query": "maybe"},
        {"expires_at": "2027-01-01T00:00:00"},
        {"expires_at": "soon"},
        {"names": "roadmap"},
        {"names": [7]},
        {"names": ["x"] * 51},
        {"tags": "x"},
        {"destination": None},
        {"destination": 7},
        {"expires_at": "9999-12-31T23:59:59-12:00"},
        {"expires_at": "0001-01-01T00:00:00+12:00"},
    ],
)
def test_bad_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LinkCreate.model_validate({**GOOD, **wrong})


def test_seed_001_lengths_that_are_just_right() -> None:
    new = LinkCreate.model_validate(
        {
            **GOOD,
            "title": f" {'é' * 200} ",
            "notes": "é" * 2000,
            "expires_at": "2027-01-01T02:00:00+02:00",
        }
    )
    assert new.title == "é" * 200
    assert new.expires_at == datetime(2027, 1, 1, tzinfo=UTC)


def test_empty_words_are_no_words() -> None:
    new = LinkCreate.model_validate({**GOOD, "title": "  ", "notes": ""})
    assert (new.title, new.notes) == (None, None)


@pytest.mark.parametrize(
    "field", ["destination", "tags", "redirect_status", "visibility", "forward_query"]
)
def test_a_patch_cannot_clear_what_a_link_must_have(field: str) -> None:
    with pytest.raises(ValidationError):
        LinkPatch.model_validate({field: None})
    assert LinkPatch().model_fields_set == set()
    schema = LinkPatch.model_json_schema()["properties"][field]
    assert "null" not in str(schema.get("anyOf", schema))


def test_a_patch_can_clear_title_notes_and_expiry() -> None:
    patch = LinkPatch.model_validate(
        {"title": None, "notes": None, "expires_at": None, "visibility": "public"}
    )
    assert patch.model_fields_set == {"title", "notes", "expires_at", "visibility"}
    assert patch.visibility is Visibility.PUBLIC
