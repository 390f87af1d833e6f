"""All tests that open sockets, run in a network namespace with only loopback."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from proofs.security import COUNTED

SEALED = Path(__file__).parent / "sealed"


def _namespaces_are_allowed() -> bool:
    try:
        return (
            subprocess.run(["unshare", "-rn", "true"], check=False, capture_output=True).returncode
            == 0
        )
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("name", sorted(path.name for path in SEALED.glob("test_*.py")))
def test_inside_a_sealed_network(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if not _namespaces_are_allowed():
        pytest.skip("absent service: unprivileged network namespaces (unshare -rn)")
    alone = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--basetemp",
        str(tmp_path / "inner"),
    ]  # pytest tidies what several runs share
    command = ["unshare", "-rn", sys.executable, "-m", "pytest", str(SEALED / name), "-q", *alone]
    environment = {**os.environ, "REFRACT_TEST_SEALED": "1"}

    run = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=300, env=environment
    )

    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed, run.stdout
    record_property(COUNTED, int(passed[1]))
