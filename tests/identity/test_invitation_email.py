"""Invitations by email, over a real connection to a mail server."""

import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import ValidationError
from sqlalchemy import select

from refract.core.mail import MailRejected, MailServerUnavailable
from refract.core.runtime import Runtime
from refract.core.settings.model import Settings
from refract.identity.invitations import service
from refract.identity.invitations.jobs import send_invitation
from refract.identity.invitations.models import AccountInvitation
from refract.identity.invitations.schemas import AccountInvitationCreate
from refract.identity.models import User
from refract.identity.payloads import SendInvitation
from refract.jobs.models import Job
from tests.conftest import START, make_settings
from tests.smtp import MailServer, serve_mail


@pytest.fixture
async def mail() -> AsyncIterator[MailServer]:
    async with serve_mail() as server:
        yield server


@pytest.fixture
def settings(database: str, tmp_path: Path, mail: MailServer) -> Settings:
    return make_settings(
        tmp_path / "data",
        database_url=database,
        smtp_url=f"smtp://go:s%40fe@127.0.0.1:{mail.port}",
        mail_from="Refract <go@example.com>",
    )


async def _invite(rt: Runtime, by: User, **given: object) -> SendInvitation:
    """Create an invitation that is sent by email; return the job that was enqueued."""
    fields = {"email": "grace@example.com", "name": "Grace", **given}
    async with rt.db.write() as session:
        new = AccountInvitationCreate.model_validate(fields)
        row, url = await service.create_invitation(session, rt, by, new)
        jobs = list(await session.scalars(select(Job).where(Job.kind == SendInvitation.kind)))
    assert url is None, "nobody but the recipient gets it"
    assert row.delivery == "queued"
    assert [job.payload for job in jobs] == [{"invitation_id": str(row.id)}], "no secret in it"
    return SendInvitation(invitation_id=row.id)


async def _delivery(rt: Runtime) -> str | None:
    async with rt.db.read() as session:
        return await session.scalar(select(AccountInvitation.delivery))


def _token(mail: MailServer) -> str:
    body = mail.messages[-1].get_content()
    (line,) = [line for line in body.splitlines() if "/auth/invitation/" in line]
    return str(line).rsplit("/", 1)[1]


async def test_the_link_in_the_email_creates_the_account(
    rt: Runtime, root: User, mail: MailServer
) -> None:
    job = await _invite(rt, root, note="Welcome to the team — we use it every day.")
    await send_invitation(rt, job)

    (message,) = mail.messages
    assert mail.recipients == ["grace@example.com"]
    assert mail.logins == [("go", "s@fe")]
    assert message["From"] == "Refract <go@example.com>"
    assert message["To"] == "Grace <grace@example.com>"
    assert message["Subject"] == "Root invites you to Refract"
    assert "Welcome to the team — we use it every day." in message.get_content()
    assert await _delivery(rt) == "sent"
    async with rt.db.write() as session:
        grace = await service.accept_invitation(session, rt, _token(mail), "Grace")
    assert grace.email == "grace@example.com"


async def test_it_is_written_in_the_language_of_the_inviter(
    rt: Runtime, root: User, mail: MailServer
) -> None:
    async with rt.db.write() as session:
        (await session.get_one(User, root.id)).preferences = {"locale": "de"}
    await send_invitation(rt, await _invite(rt, root))
    assert "lädt" in mail.messages[0]["Subject"]
    assert "Hallo Grace" in mail.messages[0].get_content()


async def test_what_may_pass_is_tried_again_with_a_link_of_its_own(
    rt: Runtime, root: User, mail: MailServer
) -> None:
    job = await _invite(rt, root)
    mail.refusals.append("450 mailbox busy")
    with pytest.raises(MailServerUnavailable, match="450 mailbox busy"):
        await send_invitation(rt, job)
    assert (await _delivery(rt), mail.messages) == ("failed", [])

    await send_invitation(rt, job)
    assert await _delivery(rt) == "sent"
    async with rt.db.read() as session:
        assert await service.find_invitation(session, rt, _token(mail)) is not None


async def test_a_final_refusal_ends_the_job(rt: Runtime, root: User, mail: MailServer) -> None:
    job = await _invite(rt, root)
    mail.refusals.append("550 no such mailbox")
    with pytest.raises(MailRejected, match="550 no such mailbox"):
        await send_invitation(rt, job)
    assert await _delivery(rt) == "failed"


async def test_nothing_is_sent_for_what_was_revoked_or_is_passed_on_by_hand(
    rt: Runtime, root: User, mail: MailServer
) -> None:
    revoked, renewed = await _invite(rt, root), None
    async with rt.db.write() as session:
        await service.revoke_invitation(session, rt, root, revoked.invitation_id)
    await send_invitation(rt, revoked)
    async with rt.db.write() as session:
        new = AccountInvitationCreate(email="ann@example.com")
        row, _ = await service.create_invitation(session, rt, root, new)
        renewed, url = await service.renew_link(session, rt, root, row.id)
    await send_invitation(rt, SendInvitation(invitation_id=row.id))

    assert mail.messages == []
    assert renewed.delivery is None
    async with rt.db.read() as session:
        assert await service.find_invitation(session, rt, url.rsplit("/", 1)[1]) is not None


async def test_a_mail_server_that_is_away_is_tried_again(
    rt: Runtime, root: User, mail: MailServer
) -> None:
    job = await _invite(rt, root)
    async with serve_mail() as gone:
        port = gone.port
    away = rt.settings.model_copy(update={"smtp_url": f"smtp://127.0.0.1:{port}"})
    rt.settings = away
    with pytest.raises(MailServerUnavailable, match="refused"):
        await send_invitation(rt, job)


async def test_encryption_from_the_start_and_only_with_a_trusted_certificate(
    rt: Runtime, root: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, context = _make_certificate(tmp_path)
    job = await _invite(rt, root)
    async with serve_mail(context) as mail:
        encrypted = {"smtp_url": f"smtps://localhost:{mail.port}"}
        rt.settings = rt.settings.model_copy(update=encrypted)
        with pytest.raises(MailRejected, match="certificate"):
            await send_invitation(rt, job)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await send_invitation(rt, job)
        assert [message["To"] for message in mail.messages] == ["Grace <grace@example.com>"]


def _make_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """Return the certificate of `localhost`, signed by itself, and a server's context with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(START - timedelta(days=3650))
        .not_valid_after(START + timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, private)
    return certificate, context


@pytest.mark.parametrize(
    "given",
    [
        {"smtp_url": "smtp://mail.example.com"},
        {"smtp_url": "http://mail.example.com", "mail_from": "go@example.com"},
        {"smtp_url": "smtp://go:p@ss@mail.example.com", "mail_from": "go@example.com"},
        {"smtp_url": "smtp://mail.example.com/x", "mail_from": "go@example.com"},
        {"smtp_url": "smtp://mail.example.com", "mail_from": "go"},
        {"smtp_url": "smtp://mail.example.com", "mail_from": "go@example.com\nBcc: x@example.com"},
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path: Path, given: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        make_settings(tmp_path / "data", **given)
