"""Compare the locked dependencies with a public list of known vulnerabilities (`make audit`).

It needs the network: where the list cannot be reached it says so and ends with status 2, which
means neither well nor ill.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock")
UNREACHABLE = re.compile(
    r"Connection|Max retries|Failed to establish|Resolution|ServiceError|Timeout|Proxy|SSLError",
    re.IGNORECASE,
)


def audit(program: str, lock: str) -> int:
    """Return 0 if no vulnerability is known, 1 if one is, 2 if the list could not be asked."""
    command = [
        program,
        "--disable-pip",
        "--require-hashes",
        "--progress-spinner",
        "off",
        "-r",
        str(ROOT / lock),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and UNREACHABLE.search(done.stderr):
        print(
            f"{lock}: the list of known vulnerabilities cannot be reached, so nothing can be said."
            " Run this where there is a network."
        )
        return 2
    unknown = len(re.findall("could not be audited", done.stdout + done.stderr))
    if unknown:
        print(f"{lock}: {unknown} packages could not be looked up, so nothing can be said of them.")
    shown = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if "could not be audited" not in line
    ]
    print(f"{lock}: " + "\n".join(shown).strip())
    return done.returncode or (2 if unknown else 0)


def main() -> None:
    sys.exit(max(audit(sys.argv[1], lock) for lock in LOCKS))


if __name__ == "__main__":
    main()
