"""Schemas of invitations to create an account."""

import re
from datetime import datetime
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from refract.core.phrases import Phrase
from refract.core.schemas import Id, InputSchema, OutputSchema
from refract.core.text import clean_line
from refract.identity.invitations.models import AccountInvitation
from refract.identity.models import User, choose_name

DEFAULT_VALID_DAYS = 7
MAX_VALID_DAYS = 30
_EMAIL: Final = re.compile(r"[^\s@<>()\[\]\\,;:\"]+@[^\s@<>()\[\]\\,;:\"]+")


def _check_email(text: str) -> str:
    if not _EMAIL.fullmatch(text) or not text.isprintable():
        raise ValueError(Phrase("Enter an email address, like ada@example.com."))
    return text


def _check_name(text: str) -> str:
    """Refuse an email address: names are shown to everyone who is signed in."""
    if not choose_name(None, text):
        raise ValueError(Phrase("Enter a name, not an email address."))
    return text


PersonName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100),
    BeforeValidator(lambda text: clean_line(text, 101) if isinstance(text, str) else text),
    AfterValidator(_check_name),
]


class AccountInvitationCreate(InputSchema):
    """A new invitation to create an account."""

    name: PersonName | None = Field(
        default=None,
        examples=["Ada Lovelace"],
        description="Filled in for them; they can change it.",
    )
    email: (
        Annotated[
            str,
            StringConstraints(strip_whitespace=True, max_length=255),
            AfterValidator(_check_email),
        ]
        | None
    ) = Field(
        default=None,
        examples=["ada@example.com"],
        description="Becomes the email address of the account. You vouch for it.",
    )
    role: Literal["user", "admin"] = "user"
    valid_days: int = Field(default=DEFAULT_VALID_DAYS, ge=1, le=MAX_VALID_DAYS)
    note: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = Field(
        default="", examples=["Welcome to the team."], description="Shown with the invitation."
    )
    send_email: bool = Field(
        default=True,
        description=(
            "Send the link to `email` if a mail server is configured. Otherwise the response"
            " contains it."
        ),
    )


class AcceptanceForm(InputSchema):
    """What an invited person types."""

    name: PersonName


class AccountInvitationOut(OutputSchema):
    """An invitation to create an account, without its link."""

    id: Id
    name: str = Field(examples=["Ada Lovelace"])
    email: str = Field(examples=["ada@example.com"])
    role: Literal["user", "admin"]
    note: str = Field(examples=["Welcome to the team."])
    state: Literal["pending", "accepted", "revoked", "expired"]
    delivery: Literal["queued", "sent", "failed"] | None = Field(
        description="Of the email; null if the link is passed on by hand."
    )
    inviter_id: Id
    user_id: Id | None = Field(description="The account that it created.")
    created_at: datetime
    expires_at: datetime
    accepted_at: datetime | None

    @classmethod
    def from_invitation(cls, row: AccountInvitation, inviter: User, at: datetime) -> Self:
        """Return an invitation with its state."""
        fields = {name: getattr(row, name) for name in cls.model_fields if name != "state"}
        return cls(**fields, state=row.state_at(at, inviter).value)


class NewAccountInvitation(AccountInvitationOut):
    """An invitation with its link, which is shown once."""

    url: str | None = Field(
        default=None,
        examples=["https://go.example.com/auth/invitation/5cR1…"],
        description="The one-time link; null if it is sent by email.",
    )


class AccountInvitationPage(OutputSchema):
    """A page of invitations."""

    items: list[AccountInvitationOut]
    next_cursor: str | None
