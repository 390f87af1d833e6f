"""Everything that changes links. The caller opens the transaction, and has looked at destinations before."""

from refract.links.service.create import CreatedLink, charge_trial, create_link, create_links
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
from refract.links.service.new_links import KeptIdentity, NewLink, check_link, check_links, digest
from refract.links.service.people import AddressLimit, add_owner, remove_owner, share_link, transfer_link, unshare_link
from refract.links.service.upkeep import mark_expired, purge_links

__all__ = [
    "EXPIRES_AFTER",
    "UNDO_WITHIN",
    "AddressLimit",
    "CreatedLink",
    "Held",
    "KeptIdentity",
    "NewLink",
    "accept_invitation",
    "add_name",
    "add_owner",
    "charge_trial",
    "check_link",
    "check_links",
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
