"""Sending of invitations by email."""

from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from urllib.parse import urlsplit

from refract.core.errors import RefractError
from refract.core.mail import send_mail
from refract.core.runtime import Runtime
from refract.identity.invitations import service
from refract.identity.invitations.models import AccountInvitation, EmailDelivery
from refract.identity.models import User
from refract.identity.payloads import SendInvitation
from refract.jobs.handlers import handles
from refract.web.formats import format_date, prepare_language
from refract.web.i18n import choose_locale, gettext, use_locale


@handles(SendInvitation, tries=5, backoff=(0.0, 30.0, 300.0, 1800.0, 3600.0))
async def send_invitation(rt: Runtime, job: SendInvitation) -> None:
    """Send an invitation in the language of its inviter."""
    async with rt.db.write() as session:
        found = await service.start_delivery(session, rt, job.invitation_id)
    if found is None:
        return
    row, inviter, url = found
    locale = choose_locale(inviter.preferences.get("locale"), "")
    await prepare_language(locale, rt)
    with use_locale(locale):
        message = _build_message(rt, row, inviter, url)
    try:
        await send_mail(rt.settings, message)
    except RefractError:
        async with rt.db.write() as session:
            await service.finish_delivery(session, row.id, EmailDelivery.FAILED)
        raise
    async with rt.db.write() as session:
        await service.finish_delivery(session, row.id, EmailDelivery.SENT)


def _build_message(rt: Runtime, row: AccountInvitation, inviter: User, url: str) -> EmailMessage:
    host = urlsplit(rt.settings.public_url).netloc
    who = inviter.chosen_name or gettext("An administrator")
    message = EmailMessage()
    message["Subject"] = gettext("{name} invites you to Refract", name=who)
    message["From"] = rt.settings.mail_from
    message["To"] = Address(row.name, addr_spec=row.email)
    message["Date"] = format_datetime(rt.clock.now())
    message["Message-ID"] = make_msgid(domain=host.partition(":")[0])
    message["Auto-Submitted"] = "auto-generated"
    until = format_date(row.expires_at.date())
    paragraphs = [
        gettext("Hello {name},", name=row.name) if row.name else gettext("Hello,"),
        gettext(
            "{name} invites you to create an account on {host}, for short links, lists and"
            " bookmarks.",
            name=who,
            host=host,
        ),
        *([row.note] if row.note else []),
        gettext("Accept the invitation:") + f"\n{url}",
        gettext(
            "The link works once, until {date}. If you didn’t expect this email, ignore it.",
            date=until,
        ),
    ]
    message.set_content("\n\n".join(paragraphs) + "\n")
    return message


HANDLERS = (send_invitation,)
