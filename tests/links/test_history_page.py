"""The history of a link in the words of its page."""

from datetime import UTC, datetime
from typing import Any

import pytest

from refract.links.enums import LinkState
from refract.links.history import _REPORTED_FIELDS, LinkChangeAction
from refract.links.models import LinkChange
from refract.links.pages.history import ACTION_LABELS, FIELD_LABELS, STATE_LABELS, build_version
from refract.web.i18n import LANGUAGES, use_locale

NOW = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)


def _describe(field: str, before: Any, after: Any) -> tuple[str, str, str]:
    change = LinkChange(
        version=2,
        at=NOW,
        actor_id=None,
        action=LinkChangeAction.EDITED.value,
        changes={field: {"from": before, "to": after}},
    )
    ((label, old, new),) = build_version(change, {}, newest=2)["changes"]
    return str(label), old, new


def test_every_action_field_and_state_has_a_label() -> None:
    assert set(ACTION_LABELS) == set(LinkChangeAction)
    assert set(FIELD_LABELS) == {*_REPORTED_FIELDS, "password", "reason"}
    assert set(STATE_LABELS) == set(LinkState)


@pytest.mark.parametrize(
    ("field", "before", "after", "words"),
    [
        ("title", None, "Plans", ("Title", "", "Plans")),
        ("notes", "Old", "", ("Notes", "Old", "")),
        ("tags", [], ["a", "b"], ("Tags", "", "a, b")),
        ("forward_query", False, True, ("Forward query parameters", "No", "Yes")),
        ("status", "active", "disabled", ("Status", "Active", "Disabled")),
        (
            "redirect_status",
            302,
            301,
            ("Redirect type", "302 Temporary", "301 Permanent"),
        ),
        ("expires_at", None, NOW.isoformat(), ("Expires", "", "Mar 14, 2026, 3:09\u202fPM UTC")),
        ("reason", None, "dangerous (malware)", ("Reason", "", "Dangerous destination (malware)")),
        (
            "destination",
            None,
            "https://bücher.example/",
            ("Destination", "", "https://xn--bcher-kva.example/"),
        ),
    ],
)
def test_changes_are_shown_in_words(
    field: str, before: Any, after: Any, words: tuple[str, str, str]
) -> None:
    assert _describe(field, before, after) == words


def test_words_are_in_the_language_of_the_page() -> None:
    with use_locale(LANGUAGES["de"]):
        assert _describe("status", "active", "deleted") == ("Status", "Aktiv", "Gelöscht")
