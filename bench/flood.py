"""P4: a flood of unknown names.

Links that exist keep their places in the table, and memory stays where it is.

    python -m bench flood [--seconds S]

The limit of misses per network is switched off, so that every unknown path goes all the way to the
database.
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

from bench._common import WRK_HEADERS, ask, busy, metrics, resident_mb, table, write
from bench._links import make_links
from tools.serving import serving

NAMES = 10_000
REAL = f"""
local number = 0
request = function()
  number = (number + 7919) % {NAMES}
  return wrk.format("GET", "/s" .. number)
end
"""
UNKNOWN = """
math.randomseed(os.time())
request = function()
  return wrk.format("GET", "/u" .. math.random(1, 1000000000))
end
"""


def wrk(url: str, script: Path, seconds: int, connections: int) -> "subprocess.Popen[str]":
    words = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "-s",
        str(script),
        *WRK_HEADERS,
        f"{url}/",
    ]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def answered(process: "subprocess.Popen[str]") -> int:
    out, _ = process.communicate()
    return int(re.findall(r"(\d+) requests in", out)[0])


def phase(
    url: str, pid: int, scripts: dict[str, Path], seconds: int, *, flooded: bool
) -> dict[str, float]:
    before = metrics(url)
    flood = wrk(url, scripts["unknown"], seconds, 16) if flooded else None
    real = answered(wrk(url, scripts["real"], seconds, 16))
    unknown = answered(flood) if flood else 0
    after = metrics(url)
    hits = (
        after['refract_lookups_total{tier="memory"}']
        - before['refract_lookups_total{tier="memory"}']
    )
    return {
        "real": real,
        "unknown": unknown,
        "hit_rate": min(1.0, hits / real),
        "evicted": after["refract_cache_evicted_total"],
        "cached_links": after["refract_cached_links"],
        "cached_misses": after["refract_cached_misses"],
        "resident_mb": resident_mb(pid),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench flood", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args(arguments)
    load_before = busy()
    with tempfile.TemporaryDirectory(prefix="refract-bench-") as directory:
        data = Path(directory) / "data"
        make_links(data, NAMES)
        scripts = {name: Path(directory) / f"{name}.lua" for name in ("real", "unknown")}
        scripts["real"].write_text(REAL)
        scripts["unknown"].write_text(UNKNOWN)
        with serving(
            data,
            role="redirect",
            cached_links=NAMES,
            cached_misses=5000,
            misses_per_minute="unlimited",
        ) as served:
            ask(served.url, (f"/s{number}" for number in range(NAMES)))
            found = {
                name: phase(
                    served.url, served.process.pid, scripts, options.seconds, flooded=flooded
                )
                for name, flooded in (
                    ("calm", False),
                    ("flood", True),
                    ("flood again", True),
                    ("calm again", False),
                )
            }
    print()
    figures = (
        "real",
        "unknown",
        "hit_rate",
        "evicted",
        "cached_links",
        "cached_misses",
        "resident_mb",
    )
    table(
        ["", *figures],
        [[name, *(f"{one[figure]:.6g}" for figure in figures)] for name, one in found.items()],
    )
    growth = found["flood again"]["resident_mb"] - found["flood"]["resident_mb"]
    print(f"P4 bar: no loss of hit rate; memory bounded (the second flood added {growth:.1f} MB)")
    write("flood", "P4", load_before, options=vars(options), phases=found)
    return 0 if all(one["hit_rate"] == 1 and one["evicted"] == 0 for one in found.values()) else 1
