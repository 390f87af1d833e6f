"""Errors of authentication and accounts."""

from refract.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    Limited,
    Malformed,
    NotFound,
    Unauthenticated,
    Unavailable,
)


class SignInRequired(Unauthenticated):
    """Sign in, or send an API key as X-API-Key or as a Bearer token."""


class InvalidCredentials(Unauthenticated):
    """Invalid or expired credentials. Sign in again, or use another API key."""


class KeyExpired(Unauthenticated):
    """This API key expired on {date}. Create a new one in the settings."""


class MissingScope(Forbidden):
    """This API key lacks the scope "{scope}". Use a key that has it."""


class TeamKeyForbidden(Forbidden):
    """A key of a team can only use its links, lists and analytics. Use a key of your own."""


class AdminRequired(Forbidden):
    """Only administrators can do this."""


class CsrfFailed(Forbidden):
    """Missing CSRF token or Origin. Reload the page and try again, or use an API key."""


class SignInLinkExpired(NotFound):
    """This sign-in link was used or has expired. Create a new one with `refract signin-link`."""


class SignInLinksDisabled(Forbidden):
    """Sign-in links are disabled because an identity provider is configured."""


class SignInLinkNotAllowed(Conflict):
    """Only active accounts without an identity provider can sign in with a one-time link."""


class InvitationsDisabled(Forbidden):
    """Invitations are disabled because an identity provider is configured."""


class InvitationLinkExpired(NotFound):
    """This invitation was used or revoked, or it has expired. Ask for a new one."""


class AccountInvitationNotFound(NotFound):
    """There's no open invitation with this id."""


class EmailTaken(Conflict):
    """There's already an account with the email "{email}"."""


class OpenInvitationLimit(Conflict):
    """There can be at most {limit} open invitations. Revoke one first."""


class KeyNotFound(NotFound):
    """API key not found."""


class SessionNotFound(NotFound):
    """Session not found."""


class UserNotFound(NotFound):
    """There's no active user with the email "{email}"."""


class ScopeNotAllowed(Forbidden):
    """A key can only create keys with its own scopes, and it lacks "{scope}"."""


class AdminScopeNotAllowed(Forbidden):
    """Only administrators can have keys with the scope "admin"."""


class InvalidKeyExpiry(Invalid):
    """A key must expire in the future, within ten years."""


class AmbiguousEmail(Conflict):
    """Several users share the email "{email}". Ask an administrator."""


class UnknownTimeZone(Invalid):
    """The time zone "{name}" is unknown. Use a name such as Europe/Berlin."""


class IssuerUnavailable(Unavailable):
    """{name} isn't responding, so you can't sign in with it. Try again in a moment."""


class IssuerNotFound(NotFound):
    """Identity provider not found."""


class SignInFailed(Forbidden):
    """Sign-in failed: {why} Start again."""


class InvalidLogoutToken(Malformed):
    """The logout token was rejected: {why}."""


class AccountNotAllowed(Forbidden):
    """This account can't be used here."""


class AccountSuspended(AccountNotAllowed):
    """This account is suspended. Contact an administrator."""


class AccountBarred(AccountNotAllowed):
    """Your account was deleted.

    To sign up again, give an administrator this reference: {reference}.
    """


class BarredAccountNotFound(NotFound):
    """No deleted account with this id is barred."""


class EmailDomainNotAllowed(AccountNotAllowed):
    """Your email domain isn't allowed to sign in here. Contact an administrator."""


class LastAdmin(Conflict):
    """This is the last active administrator. Make someone else an administrator first."""


class StreamLimitReached(Limited):
    """You have {limit} live streams open, which is the limit. Close one first."""


class ExportLimitReached(Limited):
    """Another export of yours is running. Try again when it's finished."""


class AccountNotFound(NotFound):
    """Account not found."""


class NewOwnerRequired(Invalid):
    """Choose another active account, or a team, to take over the links and lists."""
