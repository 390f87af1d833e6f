"""Cleaning of a provider's claims."""

from typing import Any

import pytest

from refract.identity.oidc.accounts import clean_claim


@pytest.mark.parametrize("claim", [None, 7, ["a"], {"a": 1}, "", "\u200b\u2066", "\ud800"])
def test_a_claim_that_says_nothing_is_empty(claim: Any) -> None:
    assert clean_claim(claim, 10) == ""
