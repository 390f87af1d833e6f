"""Servers that are hostile or broken."""

import asyncio
import socket
import struct
import zlib

from refract.core.net.connection import MIB
from tests.core.net.sealed.internet import Handler, Request

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def flood(head: bytes, piece: bytes) -> Handler:
    async def handler(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()

    return handler


def drip(head: bytes, piece: bytes, seconds: float = 0.02) -> Handler:
    async def handler(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(seconds)

    return handler


def bomb() -> Handler:
    """Return ten gigabytes of blanks, packed into ten megabytes: one block that can be repeated."""
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH)

    async def handler(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + head)
        for _ in range(10_240):
            writer.write(block)
            await writer.drain()

    return handler


def reset_after(raw: bytes) -> Handler:
    async def handler(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()

    return handler


def announces_and_waits(length: int) -> Handler:
    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % length)
        await silence(request, writer)

    return handler


async def silence(_request: Request, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)
