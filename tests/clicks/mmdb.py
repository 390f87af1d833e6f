"""A small writer of `.mmdb` files, for tests of both layouts without a download."""

import ipaddress
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MARKER = b"\xab\xcd\xefMaxMind.com"


class U16(int):
    """A number with its size: the format distinguishes sizes, and readers insist on it."""


class U64(int):
    """A number with its size, as above."""


def write_mmdb(path: Path, networks: Mapping[str, Any], *, ip_version: int = 6) -> None:
    """Return a database with one record per network.

    IPv4 networks are below `::/96`, as in real files.
    """
    data, offsets = b"", []
    tree: list[list[int | None]] = [[None, None]]
    leaves: dict[tuple[int, int], int] = {}
    for number, (network, record) in enumerate(networks.items()):
        offsets.append(len(data))
        data += _encode(record)
        _plant(tree, leaves, _bits(network, ip_version), number)
    nodes = b"".join(_pair(tree, leaves, offsets, node) for node in range(len(tree)))
    about = {
        "binary_format_major_version": U16(2),
        "binary_format_minor_version": U16(0),
        "build_epoch": U64(1_700_000_000),
        "database_type": "Test",
        "description": {"en": "Made by a test"},
        "ip_version": U16(ip_version),
        "languages": ["en"],
        "node_count": len(tree),
        "record_size": U16(32),
    }
    path.write_bytes(nodes + b"\0" * 16 + data + _MARKER + _encode(about))


def _bits(network: str, ip_version: int) -> list[int]:
    parsed = ipaddress.ip_network(network)
    length = parsed.prefixlen
    bits = [int(bit) for bit in f"{int(parsed.network_address):0{parsed.max_prefixlen}b}"][:length]
    return [0] * 96 + bits if parsed.version == 4 and ip_version == 6 else bits


def _plant(
    tree: list[list[int | None]], leaves: dict[tuple[int, int], int], bits: list[int], number: int
) -> None:
    node = 0
    for bit in bits[:-1]:
        below = tree[node][bit]
        if below is None:
            tree.append([None, None])
            below = tree[node][bit] = len(tree) - 1
        node = below
    leaves[node, bits[-1]] = number


def _pair(
    tree: list[list[int | None]], leaves: dict[tuple[int, int], int], offsets: list[int], node: int
) -> bytes:
    values = []
    for bit in (0, 1):
        below = tree[node][bit]
        if (node, bit) in leaves:
            values.append(len(tree) + 16 + offsets[leaves[node, bit]])
        else:
            values.append(len(tree) if below is None else below)
    return struct.pack(">II", *values)


def _encode(value: Any) -> bytes:
    if isinstance(value, dict):
        return _head(7, len(value)) + b"".join(
            _encode(key) + _encode(item) for key, item in value.items()
        )
    if isinstance(value, list):
        return _head(11, len(value)) + b"".join(_encode(item) for item in value)
    if isinstance(value, str):
        text = value.encode()
        return _head(2, len(text)) + text
    if isinstance(value, float):
        return _head(3, 8) + struct.pack(">d", value)
    raw: bytes = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return (
        _head(5 if isinstance(value, U16) else 9 if isinstance(value, U64) else 6, len(raw)) + raw
    )


def _head(kind: int, size: int) -> bytes:
    assert size < 285
    small, more = (size, b"") if size < 29 else (29, bytes([size - 29]))
    return bytes([kind << 5 | small]) + more if kind < 8 else bytes([small, kind - 7]) + more
