"""Outgoing email over the operator's mail server."""

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit

from refract.core.errors import Conflict, Unavailable
from refract.core.ip_addresses import is_loopback
from refract.core.settings.model import Settings
from refract.core.text import make_excerpt

MAIL_TIMEOUT_SECONDS = 20.0
SMTP_PORT, SMTPS_PORT = 587, 465
_MAX_REASON_LENGTH = 200
_MIN_PERMANENT_CODE = 500


class MailServerUnavailable(Unavailable):
    """The mail server {host} couldn't take the message: {why}. It is sent again later."""


class MailRejected(Conflict):
    """The mail server {host} rejected the message: {why}."""


class MailServerInsecure(Conflict):
    """The mail server {host} offers no encryption, so its password wasn't sent. Use smtps://."""


async def send_mail(settings: Settings, message: EmailMessage) -> None:
    """Send a message. Raises `MailServerUnavailable` for what may pass, else `MailRejected`."""
    if settings.smtp_url is None:
        raise MailRejected(host="", why="REFRACT_SMTP_URL is not set")
    await asyncio.to_thread(_send, settings.smtp_url, message)


def _send(url: str, message: EmailMessage) -> None:
    host = urlsplit(url).hostname or ""
    try:
        with _connect(url, host) as server:
            server.send_message(message)
    except smtplib.SMTPRecipientsRefused as exc:
        code, reason = next(iter(exc.recipients.values()))
        raise _describe_refusal(host, code, reason) from exc
    except smtplib.SMTPResponseException as exc:
        raise _describe_refusal(host, exc.smtp_code, exc.smtp_error) from exc
    except (smtplib.SMTPNotSupportedError, ssl.SSLCertVerificationError) as exc:
        raise MailRejected(host=host, why=make_excerpt(str(exc), _MAX_REASON_LENGTH)) from exc
    except (smtplib.SMTPException, OSError) as exc:
        why = make_excerpt(str(exc) or type(exc).__name__, _MAX_REASON_LENGTH)
        raise MailServerUnavailable(host=host, why=why) from exc


def _connect(url: str, host: str) -> smtplib.SMTP:
    """Return a connection that is encrypted if the server can, and signed in if the URL says so."""
    parts = urlsplit(url)
    context = ssl.create_default_context()
    if parts.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            host, parts.port or SMTPS_PORT, timeout=MAIL_TIMEOUT_SECONDS, context=context
        )
    else:
        server = smtplib.SMTP(host, parts.port or SMTP_PORT, timeout=MAIL_TIMEOUT_SECONDS)
    try:
        server.ehlo_or_helo_if_needed()
        is_encrypted = parts.scheme == "smtps"
        if not is_encrypted and server.has_extn("starttls"):
            server.starttls(context=context)
            is_encrypted = True
        if parts.username:
            if not is_encrypted and not is_loopback(host):
                raise MailServerInsecure(host=host)
            server.login(unquote(parts.username), unquote(parts.password or ""))
    except BaseException:
        server.close()
        raise
    return server


def _describe_refusal(
    host: str, code: int, reason: bytes | str
) -> MailRejected | MailServerUnavailable:
    """Return the error for a reply: 5xx is final, 4xx may pass."""
    text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
    why = make_excerpt(f"{code} {' '.join(text.split())}", _MAX_REASON_LENGTH)
    kind = MailRejected if code >= _MIN_PERMANENT_CODE else MailServerUnavailable
    return kind(host=host, why=why)
