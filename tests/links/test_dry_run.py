"""The dry run of a go link, in the language of the page."""

from refract.links.pages.editor import preview_expansion
from refract.web.i18n import LANGUAGES, use_locale


def test_it_says_where_a_path_leads() -> None:
    found = preview_expansion("https://example.com/{1}", "a b", "jira")

    assert found["leads_to"] == "https://example.com/a%20b"
    assert found["usage"] == "/jira/{1}"
    assert found["problem"] is None


def test_problems_are_translated() -> None:
    missing = preview_expansion("https://example.com/{1}", "", "jira")["problem"]
    invalid = preview_expansion("ftp://example.com/", "", "jira")["problem"]
    with use_locale(LANGUAGES["de"]):
        fehlt = preview_expansion("https://example.com/{1}", "", "jira")["problem"]
        falsch = preview_expansion("ftp://example.com/", "", "jira")["problem"]

    assert "{1}" in missing
    assert "{1}" in fehlt
    assert fehlt not in ("", missing)
    assert falsch not in ("", invalid)
