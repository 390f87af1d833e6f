"""The measured figures as a page.

What `make proof NAME ARGS=--save` and `make bench` wrote into their results, and nothing else.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def figures_page() -> str:
    lines = [
        "# Measured figures",
        "",
        (
            "The last saved run of each proof and each bench, as its command wrote it. Load average"
            " is that of the machine when the run began"
        ),
        (
            "(bench) or ended (proof): times taken beside other work say little, ratios and counts"
            " hold."
        ),
        "",
        "## Proofs",
        "",
        "`make proof NAME ARGS=--save`; add `--seed` to repeat a run.",
        "",
    ]
    for path in sorted((ROOT / "proofs/results").glob("*.json")):
        lines += _proof(json.loads(path.read_text()))
    lines += ["## Benches", ""]
    for path in sorted((ROOT / "bench/results").glob("*.json")):
        lines += _bench(json.loads(path.read_text()), path.stem)
    return "\n".join(lines)


MEASURED = "<!-- measured: written by `make docs` from proofs/results -->"


def with_measured(page: str) -> str:
    """The card of promises, and below its mark what the last saved run of each found.

    The card says which proof shows what.
    """
    head, _, _ = page.partition(MEASURED)
    lines = [MEASURED, "", "| # | run | seed | found | |", "|---|---|---|---|---|"]
    for number, name in re.findall(
        r"^\| (\S+) \|.*\| `make proof ([a-z-]+)`[^|]*\|$", head, re.MULTILINE
    ):
        files = sorted((ROOT / "proofs/results").glob(f"{name}*.json"))
        runs = [
            json.loads(file.read_text())
            for file in files
            if re.fullmatch(rf"{name}(-[a-z]+-\d+)?", file.stem)
        ]
        shown = [_measured(number, run) for run in runs if _shows(number, run)]
        lines += shown or [f"| {number} | `make proof {name}` | | no run of it is saved | |"]
    return head + "\n".join(lines) + "\n"


def _shows(number: str, run: dict[str, Any]) -> bool:
    """Return whether a run shows this promise.

    A proof may show several, a run for each, whose title begins with its number.
    """
    marked = re.match(r"S\d+(?=:)", run["title"])
    return marked is None or marked[0] == number


def _measured(number: str, run: dict[str, Any]) -> str:
    """One line: what must not happen is counted, what has a bar is quoted."""
    bars = [figure for figure in run["figures"] if figure["promise"]]
    never = [figure for figure in bars if figure["promise"] == "0"]
    happened = [figure for figure in never if not figure["held"]]
    quoted = [figure for figure in bars if figure not in never] + happened
    found = (
        [f"0 in {len(never) - len(happened)} of {len(never)} counts of what must not happen"]
        if never
        else []
    )
    found += [f"{figure['what']} {figure['value']} ({figure['promise']})" for figure in quoted]
    verdict = "held" if all(figure["held"] for figure in bars) else "**broken**"
    return f"| {number} | {run['title']} | {run['seed']} | {'; '.join(found)} | {verdict} |"


def _proof(run: dict[str, Any]) -> list[str]:
    about = (
        f"Seed {run['seed']} · {_machine(run['machine'])} · load average {run['load_average']:.1f}"
    )
    rows = [
        f"| {figure['what']} | {figure['value']} | {figure['promise']} | {_verdict(figure)} |"
        for figure in run["figures"]
        if figure["what"]
    ]
    return [
        f"### {run['title']}",
        "",
        about,
        "",
        "| what | figure | promised | |",
        "|---|---|---|---|",
        *rows,
        "",
    ]


def _verdict(figure: dict[str, Any]) -> str:
    if not figure["promise"]:
        return ""
    return "held" if figure["held"] else "**broken**"


def _bench(result: dict[str, Any], name: str) -> list[str]:
    about = f"{_machine(result['machine'])} · load average {result['load_average_before']:.1f}"
    lines = [f"### `make bench {name}` ({result['question']})", "", about, ""]
    for what, found in result.items():
        if what not in ("machine", "options") and _is_table(found):
            lines += _table(what, found)
    return lines


def _is_table(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and bool(found)
        and all(isinstance(row, dict) and _scalars(row) for row in found.values())
    )


def _scalars(row: dict[str, Any]) -> bool:
    return all(value is None or isinstance(value, str | int | float) for value in row.values())


def _table(what: str, found: dict[str, dict[str, Any]]) -> list[str]:
    columns = list(dict.fromkeys(column for row in found.values() for column in row))
    head = [what, *(column.replace("_", " ") for column in columns)]
    body = [
        [name, *(_number(row.get(column)) for column in columns)] for name, row in found.items()
    ]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body)] + [""]


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return (
        f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else str("" if value is None else value)
    )


def _machine(machine: dict[str, Any]) -> str:
    return f"{machine['cores']} cores, Python {machine['python']}"
