"""Everything that changes links. The caller opens the transaction, and has looked at destinations before."""

from refract.links.service.create import Made, create_link, create_links
from refract.links.service.edit import UNDO_WITHIN, edit_link, revert_link, undo
from refract.links.service.handover import hand_over_links
from refract.links.service.hold import Held, hold
from refract.links.service.invitations import (
    EXPIRES_AFTER,
    accept_invitation,
    decline_invitation,
    erase_invitations,
    forget_invitations,
    offer_link,
    withdraw_invitation,
)
from refract.links.service.lifecycle import delete_link, disable_link, enable_link, renew_link, stop_link
from refract.links.service.naming import add_name, release_name
from refract.links.service.people import add_owner, remove_owner, share_link, transfer_link, unshare_link
from refract.links.service.upkeep import mark_expired, purge_links
from refract.links.service.wishes import Kept, Wish, digest

__all__ = [
    "EXPIRES_AFTER",
    "UNDO_WITHIN",
    "Held",
    "Kept",
    "Made",
    "Wish",
    "accept_invitation",
    "add_name",
    "add_owner",
    "create_link",
    "create_links",
    "decline_invitation",
    "delete_link",
    "digest",
    "disable_link",
    "edit_link",
    "enable_link",
    "erase_invitations",
    "forget_invitations",
    "hand_over_links",
    "hold",
    "mark_expired",
    "offer_link",
    "purge_links",
    "release_name",
    "remove_owner",
    "renew_link",
    "revert_link",
    "share_link",
    "stop_link",
    "transfer_link",
    "undo",
    "unshare_link",
    "withdraw_invitation",
]
