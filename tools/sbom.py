"""Write the software bill of materials (CycloneDX 1.5, JSON) of what `make run` and the container
install.

    python3 -m tools.sbom > sbom.json

It is made from requirements.lock alone, without a network: each component with its version, its
package URL and the hashes of its files.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ENTRY = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)((?:.*\\\n)*.*)", re.MULTILINE)


def components(lock: str) -> list[dict[str, Any]]:
    """Return the components that a lock names."""
    found = []
    for name, version, rest in ENTRY.findall(lock):
        purl = f"pkg:pypi/{name}@{version}"
        hashes = [
            {"alg": "SHA-256", "content": sum_}
            for sum_ in re.findall(r"sha256:([0-9a-f]{64})", rest)
        ]
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "hashes": hashes,
            }
        )
    return found


def bill(lock: str, version: str) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "refract-links",
                "name": "refract-links",
                "version": version,
            }
        },
        "components": components(lock),
    }


def render(directory: Path = ROOT) -> str:
    """Return the bill of materials of a source tree."""
    told = re.search(
        r'^version = "([^"]+)"', (directory / "pyproject.toml").read_text(), re.MULTILINE
    )
    version = told[1] if told else "0"
    return json.dumps(bill((directory / "requirements.lock").read_text(), version), indent=1) + "\n"


def main() -> None:
    sys.stdout.write(render())


if __name__ == "__main__":
    main()
