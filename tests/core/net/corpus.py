"""Spellings of addresses that must not be reached, and addresses that must.

`python -m tests.core.net.corpus` writes the data files. Each line of `hostile.jsonl` is `[verdict,
address, url]`. `refused`: no reading of the URL may be fetched. `elsewhere`: readings differ; a
fetch from a public host is right, one from the address never.
"""

import json
import tomllib
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Literal, NamedTuple

HERE = Path(__file__).parent
Verdict = Literal["refused", "elsewhere"]

LOOPBACK, METADATA, PUBLIC = "127.0.0.1", "169.254.169.254", "93.184.215.14"
OF: dict[str, list[str]] = tomllib.loads((HERE / "ingredients.toml").read_text("utf-8"))


class Line(NamedTuple):
    verdict: Verdict
    address: str
    url: str


def _v4_hosts(text: str) -> Iterator[str]:
    address = IPv4Address(text)
    number, (a, b, c, d) = int(address), address.packed
    yield from (
        text,
        f"{text}.",
        str(number),
        f"0{number:o}",
        f"0x{number:x}",
        f"0X{number:X}",
        f"0x{number:08X}",
        f"0x00000000{number:08x}",
    )
    yield from (
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a:04o}.{b:04o}.{c:04o}.{d:04o}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
    )
    yield from (
        f"0X{a:X}.{b}.0{c:o}.{d}",
        f"{a}.0x{b:x}.{c << 8 | d}",
        f"{a}.{b << 16 | c << 8 | d}",
        f"0x{a:x}.{b << 16 | c << 8 | d}",
    )
    yield from (
        text.translate({48 + n: 0xFF10 + n for n in range(10)}),
        text.replace(".", "\u3002"),
        text.replace(".", "\uff0e"),
    )
    yield text.translate(
        {48: 0x24EA, **{48 + n: 0x2460 + n - 1 for n in range(1, 10)}}
    )  # circled digits
    yield from (
        "".join(f"%{ord(sign):02x}" for sign in text),
        text.replace(".", "%2e"),
        f"[::ffff:{text}]",
        f"[::ffff:{a:x}{b:02x}:{c:x}{d:02x}]",
    )
    yield from (
        f"[64:ff9b::{text}]",
        f"[::{text}]",
        f"{text.replace('.', '-')}.sslip.test",
        f"{text}.nip.test",
    )


def _v6_hosts(text: str) -> Iterator[str]:
    address = IPv6Address(text)
    yield from (
        f"[{address}]",
        f"[{text}]",
        f"[{address.exploded}]",
        f"[{address.exploded.upper()}]",
    )
    yield from (f"[{text}%25eth0]", f"[{text}%lo]", f"{text.replace(':', '-')}.ipv6.test")


def hostile() -> list[Line]:
    lines = [
        Line("refused", text, f"http://{host}/") for text in OF["v4"] for host in _v4_hosts(text)
    ]
    lines += [
        Line("refused", str(ip_address(text)), f"http://{host}/")
        for text in OF["v6"]
        for host in _v6_hosts(text)
    ]
    lines += [Line("refused", LOOPBACK, f"http://{name}/") for name in OF["local_names"]]
    lines += [
        Line("refused", METADATA, f"http://{name}/latest/meta-data/")
        for name in OF["metadata_names"]
    ]
    lines += [
        Line("elsewhere", LOOPBACK, split.format(i=LOOPBACK, g="good.test"))
        for split in OF["splits"]
    ]
    lines += [Line("refused", LOOPBACK, scheme.format(i=LOOPBACK)) for scheme in OF["schemes"]]
    lines += [
        Line("refused", LOOPBACK, f"http://{host}:{port}/")
        for port in OF["ports"]
        for host in (LOOPBACK, PUBLIC, "good.test")
    ]
    lines += [
        Line("refused", LOOPBACK, f"http://{user}@{PUBLIC}/")
        for user in ("user", "user:secret", ":secret")
    ]
    return list(dict.fromkeys(lines))


def public() -> list[str]:
    """Return URLs as people really use them."""
    shapes = (
        "http://{}/",
        "https://{}",
        "https://{}/a/b.html?x=1&y=2#z",
        "http://{}/wiki/Caf\u00e9_(disambiguation)?q=a b",
    )
    return [shape.format(host) for host in OF["public_hosts"] for shape in shapes] + OF[
        "public_urls"
    ]


def read_hostile() -> list[Line]:
    return [
        Line(*json.loads(line)) for line in (HERE / "hostile.jsonl").read_text("ascii").splitlines()
    ]


def read_public() -> list[str]:
    return [
        str(json.loads(line)) for line in (HERE / "public.jsonl").read_text("ascii").splitlines()
    ]


def write() -> None:
    (HERE / "hostile.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in hostile()), "ascii"
    )
    (HERE / "public.jsonl").write_text("".join(json.dumps(url) + "\n" for url in public()), "ascii")


if __name__ == "__main__":
    write()
