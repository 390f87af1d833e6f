"""Limits for foreign servers, and the only place where a socket to one is opened."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address

import h11

from refract.core.net.addresses import AddressGuard, IpAddress
from refract.core.net.errors import BadAnswer, RefusedAddress, TooLarge, Unreachable

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Sizes in bytes, times in seconds. The time for the whole fetch is an argument of `fetch`."""

    connect: float = 3.0
    idle: float = 5.0
    wire: int = 2 * MIB
    # Chunks of a body: a million of one byte each would cost seconds of CPU.
    pieces: int = 16 * KIB
    decoded: int = 8 * MIB
    ratio: int = 100
    # A small page of blanks may be compressed as much as a bomb, and is harmless.
    ratio_from: int = 64 * KIB
    head: int = 64 * KIB
    headers: int = 64
    redirects: int = 5
    per_host: int = 2
    addresses: int = 4  # of one host, tried in turn


_CHUNK = 16 * 1024


async def _dial(guard: AddressGuard, address: IpAddress, port: int) -> socket.socket:
    """Connect to one approved address, and check the address that was reached."""
    if not guard.is_allowed(address, port):
        raise RefusedAddress(f"{address}, port {port}")
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (str(address), port))
        peer = ip_address(sock.getpeername()[0])
        if peer != address:
            raise RefusedAddress(f"asked for {address}, reached {peer}")
    except BaseException:
        sock.close()
        raise
    return sock


async def _open_stream(
    guard: AddressGuard, address: IpAddress, port: int, tls: ssl.SSLContext | None, host: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    sock = await _dial(guard, address, port)
    name = host.strip("[]").rstrip(".") if tls else None
    # Owns and closes the socket.
    return await asyncio.open_connection(sock=sock, ssl=tls, server_hostname=name, limit=2 * _CHUNK)


@asynccontextmanager
async def open_connection(
    guard: AddressGuard,
    addresses: Iterable[IpAddress],
    port: int,
    *,
    tls: ssl.SSLContext | None,
    host: str,
    limits: FetchLimits,
) -> AsyncIterator["HttpExchange"]:
    """Connect to the first approved address that responds; `host` must match the certificate."""
    failure: Exception = Unreachable(f"{host} has no address")
    for address in list(addresses)[: limits.addresses]:
        try:
            async with asyncio.timeout(limits.connect):
                reader, writer = await _open_stream(guard, address, port, tls, host)
            break
        except OSError as exc:  # TimeoutError is one, and so is an invalid certificate
            failure = exc
    else:
        raise failure
    try:
        yield HttpExchange(reader, writer, limits)
    finally:
        writer.transport.abort()  # a graceful close would let the server keep us waiting


class HttpExchange:
    """One request and its response on a connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: FetchLimits
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.head)
        self._received = 0
        self._pieces = 0
        self._ended = False

    async def send_request(self, target: str, headers: list[tuple[str, str]]) -> h11.Response:
        """Send a GET and read the head of the response."""
        request = h11.Request(method="GET", target=target, headers=headers)
        self._writer.write(
            (self._http.send(request) or b"") + (self._http.send(h11.EndOfMessage()) or b"")
        )
        async with asyncio.timeout(self._limits.idle):
            await self._writer.drain()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                break
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise BadAnswer("an unexpected response")
        if len(list(event.headers)) > self._limits.headers:
            raise TooLarge(f"more than {self._limits.headers} headers")
        return event

    async def read_chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end."""
        event = await self._next_event()
        self._pieces += 1
        if self._pieces > self._limits.pieces:
            raise TooLarge(f"more than {self._limits.pieces} pieces")
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _next_event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as exc:
                raise self._translate_protocol_error(exc) from exc
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]  # h11 types its sentinels as classes
            await self._receive()

    async def _receive(self) -> None:
        if self._http.their_state is h11.SEND_RESPONSE and self._received > self._limits.head:
            raise TooLarge("the head of the answer")
        async with asyncio.timeout(self._limits.idle):
            # A read that finds bytes waiting does not yield, not even to the timeout of the whole
            # fetch.
            await asyncio.sleep(0)
            piece = await self._reader.read(_CHUNK)
        self._received += len(piece)
        if self._received > self._limits.wire:
            raise TooLarge(f"more than {self._limits.wire} bytes sent")
        self._ended = not piece
        self._http.receive_data(piece)

    def _translate_protocol_error(self, wrong: h11.RemoteProtocolError) -> Exception:
        if self._ended:
            return Unreachable("the connection ended too early")
        return TooLarge(str(wrong)) if wrong.error_status_hint == 431 else BadAnswer(str(wrong))
