"""The comparison of the README: every claim about Refract is looked up in the product."""

import pytest

from tools import comparison


def test_every_claim_has_its_proof_and_nothing_that_is_lacking_exists() -> None:
    claims = comparison.read_claims()
    assert comparison.find_problems(claims, comparison.inspect_product()) == []


def test_the_readme_shows_the_claims() -> None:
    page = comparison.README.read_text("utf-8")
    table = comparison.render_table(comparison.read_claims())
    assert comparison.update_page(page, table) == page, "run `make docs` and commit what it writes"
    assert page.count(comparison.BEGIN) == page.count(comparison.END) == 1


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"refract": "yes", "proof": ["GET /api/v1/teleport"]}, "there is no GET /api/v1/teleport"),
        ({"refract": "yes", "proof": ["field LinkCreate.wings"]}, "there is no field"),
        ({"refract": "yes", "proof": ["command refract fly"]}, "there is no command"),
        ({"refract": "yes", "proof": ["setting gravity"]}, "there is no setting"),
        ({"refract": "yes", "proof": ["test tests/docs/test_comparison.py::test_no"]}, "no test"),
        ({"refract": "no", "lacks": ["GET /api/v1/links"]}, "there is GET /api/v1/links now"),
        ({"refract": "yes"}, "needs `proof`"),
        ({"refract": "no", "proof": ["GET /api/v1/links"]}, "needs `lacks`"),
    ],
)
def test_a_claim_without_its_proof_is_a_problem(row: dict[str, object], problem: str) -> None:
    claims = {"programs": [], "rows": [{"feature": "Flying", "others": [], **row}]}
    (found, *_) = comparison.find_problems(claims, comparison.inspect_product())
    assert problem in found


def test_other_words_are_no_proof() -> None:
    with pytest.raises(ValueError, match="not a proof"):
        comparison.inspect_product().has("trust me")
