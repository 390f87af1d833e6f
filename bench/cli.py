"""CPU time and imported modules of short commands.

    python -m bench cli [--rounds N]

Each command is a new process on a database with a few keys and links. CPU time is user plus system
time, the best of the rounds, beside a bare `python -c pass` and the import of the libraries that
every command needs, both measured in the same rounds.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench._common import busy, table, write
from tools.serving import command, environment

MAX_CPU_SECONDS = 0.6
COMMANDS = {
    "refract shorten": ("shorten", "https://example.com/report"),
    "refract keys list": ("keys", "list"),
    "refract links list": ("links", "list"),
}
_BASELINES = {
    "python -c pass": "pass",
    "its libraries": (
        "import gc; gc.disable(); import aiosqlite, pydantic_settings, sqlalchemy.ext.asyncio;"
        " import structlog, typer; gc.freeze()"
    ),
}
_COUNT_MODULES = """
import atexit, sys
atexit.register(lambda: print(len(sys.modules), file=sys.stderr))
from refract.cli import main
main()
"""


def measure_cpu(words: list[str], env: dict[str, str]) -> float:
    """Run a command; return its CPU time in seconds."""
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def count_modules(arguments: tuple[str, ...], env: dict[str, str]) -> int:
    """Return how many modules are loaded when a command ends."""
    code = [sys.executable, "-c", _COUNT_MODULES, *arguments]
    done = subprocess.run(code, env=env, capture_output=True, text=True, check=True)
    return int(done.stderr.splitlines()[-1])


def prepare_data(env: dict[str, str]) -> None:
    """Create an installation with keys and links; also compile every module once."""
    made = [("migrate",), *[("keys", "create", "--name", f"key {number}") for number in range(3)]]
    made += [("shorten", f"https://example.com/{number}") for number in range(5)]
    for arguments in [*made, *COMMANDS.values()]:
        subprocess.run(command(*arguments), env=env, stdout=subprocess.DEVNULL, check=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench cli", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    load_before = busy()
    runs = {name: [sys.executable, "-c", code] for name, code in _BASELINES.items()}
    runs |= {name: command(*words) for name, words in COMMANDS.items()}
    with tempfile.TemporaryDirectory(prefix="refract-bench-") as directory:
        env = environment(data_dir=Path(directory) / "data")
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        prepare_data(env)
        rounds = [
            {name: measure_cpu(words, env) for name, words in runs.items()}
            for _ in range(options.rounds)
        ]
        modules = {name: count_modules(words, env) for name, words in COMMANDS.items()}
    best = {name: min(measured[name] for measured in rounds) for name in runs}
    bare = best["python -c pass"]
    print()
    table(
        ["", "CPU s", "× python", "modules"],
        [
            [name, f"{cpu:.3f}", f"{cpu / bare:.0f}", str(modules.get(name, ""))]
            for name, cpu in best.items()
        ],
    )
    print(f"bar: ≤ {MAX_CPU_SECONDS} s each (aim 0.5)")
    write("cli", "CPU of commands", load_before, options=vars(options), cpu=best, modules=modules)
    return 0 if all(best[name] <= MAX_CPU_SECONDS for name in COMMANDS) else 1
