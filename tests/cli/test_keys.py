"""`refract keys`."""

import pytest

from tests.cli.conftest import Run


def _column(table: str, number: int) -> list[str]:
    return [
        line.split("│")[number].strip() for line in table.splitlines() if line.count("│") > number
    ]


def test_a_key_may_expire_and_the_list_says_when(run: Run) -> None:
    assert run("keys", "create", "--name", "forever").out.startswith("refract_")
    assert (
        run(
            "keys",
            "create",
            "--name",
            "soon",
            "--expires",
            "7",
            "--scope",
            "account",
            "--scope",
            "admin",
        ).code
        == 0
    )
    assert run("keys", "create", "--name", "dated", "--expires", "2030-01-31").code == 0

    listed = run("keys", "list").out

    assert "expires soon" in " ".join(_column(listed, 5))
    assert "2030-01-31" in "".join(_column(listed, 5))


@pytest.mark.parametrize("ends", ["0", "tomorrow", "2020-01-01", "99999"])
def test_an_end_that_cannot_be_is_refused_with_status_two(run: Run, ends: str) -> None:
    ran = run("keys", "create", "--name", "x", "--expires", ends)

    assert (ran.code, ran.out) == (2, "")


def test_the_signature_token_of_a_key_is_always_the_same(run: Run) -> None:
    key = run("keys", "create", "--name", "old plug-in").out.strip()

    token = run("keys", "signature", key[:16]).out.strip()

    assert len(token) == 32
    assert token == run("keys", "signature", key[:16]).out.strip()
    assert run("keys", "signature", "refract_absent").code != 0
