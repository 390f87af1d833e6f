"""The help of every command."""

import pytest

from refract.cli.commands import COMMAND_TARGETS
from tests.cli.conftest import Run


@pytest.mark.parametrize("command", ["", *COMMAND_TARGETS])
def test_flags_have_no_type(run: Run, command: str) -> None:
    done = run(*command.split(), "--help")

    assert done.code == 0, done
    assert "--help" in done.out
    assert "<bool>" not in done.out
