"""How fast links of each system are imported, whether every old address leads where it did, and
what a hostile file of 100 MB costs.

    python -m bench imports [--links N] [--sources shlink,yourls,…] [--hostile-mb N]

For each source, a file with mixed-case, dotted, slashed and reserved codes is imported by the
command, killed (kill -9) half-way, imported again to its end, and once more, which must add
nothing. Then every address is requested from a server and its destination compared, the imports are
undone, and nothing may be left. The bar is 2,000 links a second and 100% of the addresses. Exit
status 1 if one of these fails.
"""

import argparse
import asyncio
import csv
import io
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from bench._common import table
from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings
from tests import make
from tools.serving import command, environment, serving

BAR: Final = 2_000
MAX_HOSTILE_MB: Final = 400
RESERVED: Final = ("help", "docs", "links", "about", "web")
SUMMARY = re.compile(r"([\d,]+) created, ([\d,]+) already here, ([\d,]+) skipped, ([\d,]+) refused")
UNDO = re.compile(r"rollback (\d+)")
_CREATED: Final = "2019-05-01T12:00:00+00:00"


def list_codes(count: int) -> list[str]:
    """Return codes as other systems make them: pairs that differ in case, dots, slashes, words."""
    codes = list(RESERVED)
    number = 0
    while len(codes) < count:
        codes += [
            f"aB{number}c",
            f"Ab{number}C",
            f"v{number}.0",
            f"promo/{number}/spring",
            f"x{number}",
        ]
        number += 1
    return codes[:count]


def get_destination(code: str) -> str:
    return f"https://old.example.com/?code={quote(code, safe='')}"


def write_shlink(codes: list[str]) -> str:
    links = [
        {
            "shortCode": code,
            "longUrl": get_destination(code),
            "dateCreated": _CREATED,
            "tags": ["old"],
        }
        for code in codes
    ]
    return json.dumps({"shortUrls": {"data": links}})


def write_kutt(codes: list[str]) -> str:
    links = [
        {"address": code, "target": get_destination(code), "created_at": _CREATED} for code in codes
    ]
    return json.dumps({"data": links})


def write_yourls(codes: list[str]) -> str:
    """Return an SQL dump with rows in one statement, as mysqldump writes them."""
    rows = ",".join(
        f"('{code}','{get_destination(code)}','It\\'s a page','2019-05-01 12:00:00','192.0.2.1',3)"
        for code in codes
    )
    return f"CREATE TABLE `yourls_url` (\n);\nINSERT INTO `yourls_url` VALUES {rows};\n"


def write_golink(codes: list[str]) -> str:
    lines = (
        {
            "Short": code,
            "Long": get_destination(code),
            "Created": _CREATED,
            "Owner": "ada@example.com",
        }
        for code in codes
    )
    return "\n".join(map(json.dumps, lines))


def write_dub(codes: list[str]) -> str:
    return _write_csv(
        ("Short link", "Destination URL", "Clicks", "Created at"),
        ((f"https://dub.test/{code}", get_destination(code), "0", _CREATED) for code in codes),
    )


def write_bitly(codes: list[str]) -> str:
    return _write_csv(
        ("Link", "Custom Link", "Destination URL", "Title"),
        ((f"https://bit.ly/{code}", "", get_destination(code), "A page") for code in codes),
    )


def write_columns(codes: list[str]) -> str:
    return _write_csv(("Alias", "Redirect to"), ((code, get_destination(code)) for code in codes))


def _write_csv(heading: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([heading, *rows])
    return text.getvalue()


SOURCES: Final[dict[str, Callable[[list[str]], str]]] = {
    "shlink": write_shlink,
    "yourls": write_yourls,
    "kutt": write_kutt,
    "golink": write_golink,
    "dub": write_dub,
    "bitly": write_bitly,
    "columns": write_columns,
}


@dataclass(frozen=True)
class Ran:
    """A command that ended: its output, seconds, seconds of CPU and peak memory in MB."""

    text: str
    code: int
    seconds: float
    cpu: float
    megabytes: float


def run(data: Path, *words: str) -> Ran:
    start = time.perf_counter()
    process = subprocess.Popen(
        command(*words, "--data-dir", str(data)),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    text = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    return Ran(text, process.returncode, seconds, cpu, usage.ru_maxrss / 1024)


def kill_half_way(data: Path, file: Path, rows: int) -> int:
    """Start an import, kill it once half of the rows are in; return how many were."""
    process = subprocess.Popen(
        command("import", "links", str(file), "--data-dir", str(data)),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    database = data / "refract.db"
    while process.poll() is None and (found := count_links(database)) < rows // 2:
        time.sleep(0.02)
    process.kill()
    process.wait()
    return found


def count_links(database: Path) -> int:
    import sqlite3  # noqa: PLC0415

    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return int(connection.execute("SELECT count(*) FROM links").fetchone()[0])


async def count_wrong(url: str, codes: list[str]) -> int:
    """Request every address; return how many do not lead to their destination."""
    parts = urlsplit(url)
    wrong = 0

    async def ask(share: list[str]) -> None:
        nonlocal wrong
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for code in share:
            head = (
                f"GET /{quote(code)} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: bench\r\n\r\n"
            )
            writer.write(head.encode())
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = re.search(r"(?i)content-length: (\d+)", answer)
            await reader.readexactly(int(length[1]) if length else 0)
            location = re.search(r"(?i)\r\nlocation: ([^\r]*)", answer)
            wrong += location is None or location[1] != get_destination(code)
        writer.close()

    await asyncio.gather(*(ask(codes[start::8]) for start in range(8)))
    return wrong


def prepare(data: Path) -> None:
    """Make an installation with an owner."""
    run(data, "migrate")
    asyncio.run(_make_owner(data))


async def _make_owner(data: Path) -> None:
    async with open_runtime(Settings(data_dir=data)) as rt, rt.db.write() as session:
        await make.person(session, rt)


def measure(source: str, count: int) -> tuple[list[str], bool]:
    codes = list_codes(count)
    with tempfile.TemporaryDirectory() as folder:
        data, file = Path(folder) / "data", Path(folder) / f"{source}.txt"
        file.write_text(SOURCES[source](codes), encoding="utf-8")
        whole = Path(folder) / "whole"
        prepare(whole)
        timed = run(whole, "import", "links", str(file))
        prepare(data)
        early = kill_half_way(data, file, count)
        resumed, again = (run(data, "import", "links", str(file)) for _ in range(2))
        links = count_links(data / "refract.db")
        with serving(data) as served:
            wrong = asyncio.run(count_wrong(served.url, codes))
        listed = json.loads(run(data, "import", "list", "--json").text)
        for made in listed:
            run(data, "import", "rollback", made["id"])
        left = count_links(data / "refract.db")
    rate = count / timed.seconds
    created = SUMMARY.search(timed.text)
    held = (
        rate >= BAR
        and wrong == 0
        and links == count
        and left == 0
        and created is not None
        and SUMMARY.search(again.text) is not None
    )
    right = f"{100 * (1 - wrong / count):.3f}%"
    cost = f"{timed.cpu * 1e6 / count:,.0f} µs"
    cells = [source, f"{count:,}", f"{rate:,.0f}", cost, f"{timed.megabytes:,.0f} MB"]
    return [*cells, f"{early:,}", f"{links:,}", right, f"{left:,}"], held and resumed.code in (0, 1)


def list_hostile() -> dict[str, tuple[bytes, bytes]]:
    """Return the head of each file, and what is repeated after it."""
    piece, dump = b"x" * 65_536, b"CREATE TABLE `yourls_url` ();\nINSERT INTO `yourls_url` VALUES ("
    return {
        "one endless line": (b"destination,title\nhttps://a.example/,", piece),
        "an open quote": (b'destination,title\nhttps://a.example/,"', piece),
        "an open quote, lines": (b'destination,title\nhttps://a.example/,"', b"x" * 99 + b"\n"),
        "broken UTF-8": (b"destination\n", b"https://a.example/" + b"\xff" * 1_000 + b"\n"),
        "zeros": (b"destination\n", bytes(65_536)),
        "nested JSON": (b"[", b"[" * 65_536),
        "one endless JSON text": (b'[{"destination":"', piece),
        "an endless text in SQL": (dump + b"'", piece),
        "endless values in SQL": (dump, b"'x'," * 10_000),
        "a gzip bomb": (b"\x1f\x8b\x08\x00", bytes(65_536)),
    }


def write_hostile(file: Path, head: bytes, part: bytes, size: int) -> None:
    with file.open("wb") as out:
        out.write(head)
        for _ in range((size - len(head)) // len(part)):
            out.write(part)


def measure_hostile(megabytes: int) -> tuple[list[list[str]], bool]:
    rows, held = [], True
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        prepare(data)
        for name, (head, part) in list_hostile().items():
            file = Path(folder) / "hostile"
            write_hostile(file, head, part, megabytes * 2**20)
            ran = run(data, "import", "links", str(file), "--dry-run")
            held = held and ran.megabytes <= MAX_HOSTILE_MB and ran.code in (0, 1, 2)
            rows.append(
                [
                    name,
                    f"{file.stat().st_size / 2**20:,.0f} MB",
                    f"{ran.seconds:,.1f} s",
                    f"{ran.megabytes:,.0f} MB",
                    str(ran.code),
                ]
            )
    return rows, held


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make bench imports", description=__doc__.splitlines()[0])
    parser.add_argument("--links", type=int, default=100_000)
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--hostile-mb", type=int, default=100)
    given = parser.parse_args(arguments)
    held = True
    rows = []
    for source in filter(None, given.sources.split(",")):
        cells, good = measure(source, given.links)
        held = held and good
        rows.append(cells)
        print(" · ".join(cells), flush=True)
    heads = [
        "source",
        "rows",
        "links/s",
        "CPU each",
        "memory",
        "killed at",
        "links",
        "addresses",
        "after undo",
    ]
    table(heads, rows)
    if given.hostile_mb:
        hostile, good = measure_hostile(given.hostile_mb)
        held = held and good
        table(["hostile file", "size", "time", "memory", "exit"], hostile)
    verdict = "held" if held else "MISSED"
    print(f"bars: {BAR:,} links/s, 100%, nothing left, {MAX_HOSTILE_MB} MB: {verdict}")
    return 0 if held else 1
