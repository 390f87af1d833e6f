"""A mail server on a socket of this machine, which keeps what it receives."""

import asyncio
import base64
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage

END = b"\r\n.\r\n"


class MailServer:
    """Speaks as much of RFC 5321 as a client needs, with AUTH PLAIN.

    `refusals` are replies to the next recipients, such as `450 later`; then all are accepted.
    """

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.logins: list[tuple[str, str]] = []
        self.refusals: deque[str] = deque()
        self.port = 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def reply(text: str) -> None:
            writer.write(f"{text}\r\n".encode())

        reply("220 mail.test ESMTP")
        try:
            while line := (await reader.readline()).decode():
                verb, _, rest = line.strip().partition(" ")
                match verb.upper():
                    case "EHLO":
                        reply("250-mail.test\r\n250-AUTH PLAIN\r\n250 SIZE 1000000")
                    case "AUTH":
                        _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
                        self.logins.append((user, password))
                        reply("235 welcome")
                    case "RCPT":
                        refusal = self.refusals.popleft() if self.refusals else None
                        reply(refusal or "250 known")
                        if refusal is None:
                            self.recipients.append(rest.partition("<")[2].rstrip(">"))
                    case "DATA":
                        reply("354 go on")
                        raw = (await reader.readuntil(END)).removesuffix(END)
                        self.messages.append(message_from_bytes(raw, policy=policy.default))
                        reply("250 taken")
                    case "QUIT":
                        reply("221 bye")
                        break
                    case _:
                        reply("250 fine")
                await writer.drain()
            await writer.drain()
        except ConnectionError:
            pass  # a client that was refused hangs up
        finally:
            writer.close()


@asynccontextmanager
async def serve_mail(context: ssl.SSLContext | None = None) -> AsyncIterator[MailServer]:
    """Run a mail server on a free port, encrypted from the start if there is a context."""
    mail = MailServer()
    server = await asyncio.start_server(mail.converse, "127.0.0.1", 0, ssl=context)
    mail.port = server.sockets[0].getsockname()[1]
    async with server:
        yield mail
