"""What can go wrong when we ask who somebody is."""

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


class SignInNeeded(Unauthenticated):
    """Sign in, or send an API key as X-API-Key or Bearer."""


class BadCredentials(Unauthenticated):
    """This API key or session is not valid, or no longer so."""


class KeyExpired(Unauthenticated):
    """This API key expired on {date}: make a new one in the settings."""


class MissingScope(Forbidden):
    """This API key lacks the scope "{scope}"."""


class AdministratorsOnly(Forbidden):
    """Only administrators may do this."""


class OriginUnproven(Forbidden):
    """This request did not come from a page of ours: reload the page and try again, or use an API key."""


class SigninLinkSpent(NotFound):
    """This sign-in link has been used or has expired: make a new one with `refract signin-link`."""


class SigninLinksOff(Forbidden):
    """Sign-in links are switched off here because an identity provider is configured."""


class KeyNotFound(NotFound):
    """There is no such API key."""


class SessionNotFound(NotFound):
    """There is no such session."""


class UserNotFound(NotFound):
    """There is no active person with the email address "{email}"."""


class ScopeTooWide(Forbidden):
    """A key can only make keys with scopes it has itself, and "{scope}" is not one of them."""


class AdminScopeRefused(Forbidden):
    """Only administrators can have keys with the scope "admin"."""


class KeyExpiryInvalid(Invalid):
    """A key must expire in the future, and within ten years."""


class EmailAmbiguous(Conflict):
    """Several people share the email address "{email}": ask an administrator."""


class UnknownTimeZone(Invalid):
    """ "{name}" is not a time zone: use a name such as Europe/Berlin."""


class IssuerUnavailable(Unavailable):
    """{name} does not answer at the moment, so nobody can be asked who you are: try again in a moment."""


class IssuerNotFound(NotFound):
    """There is no such way to sign in here."""


class SignInFailed(Forbidden):
    """The sign-in did not come to its end: {why} Start again."""


class LogoutRefused(Malformed):
    """This logout token is not accepted: {why}."""


class AccountRefused(Forbidden):
    """This account may not be used here."""


class AccountSuspended(AccountRefused):
    """This account is suspended: ask whoever runs this server."""


class AccountBarred(AccountRefused):
    """An account of yours was deleted here. To come back, give an administrator this reference: {reference}."""


class BarredNotFound(NotFound):
    """No deleted account with this id is barred."""


class NotInvited(AccountRefused):
    """This account may not sign in here: its provider vouches for no email address of a domain that is allowed."""


class LastAdministrator(Conflict):
    """This is the last active administrator: make somebody else one first."""


class StreamLimitReached(Limited):
    """You have {limit} live streams open, which is the limit: close one first."""


class ExportLimitReached(Limited):
    """Another export of yours is running: try again when it is done."""


class AccountNotFound(NotFound):
    """There is no such account."""


class HeirNeeded(Invalid):
    """Name another active account that takes over the links, or say that they are to be deleted."""
