"""Changes of links. Callers open the transaction, and check destinations before."""

from refract.links.service.checks import SUBSTITUTES, CheckedChanges, check_changes, check_version
from refract.links.service.copies import assign_owners, repair_copies
from refract.links.service.create import CreatedLink, charge_trial, create_link, create_links
from refract.links.service.edit import (
    UNDO_WINDOW,
    add_name,
    edit_link,
    release_name,
    replace_rules,
    revert_link,
    undo_link,
)
from refract.links.service.handover import hand_over_links
from refract.links.service.invitations import (
    INVITATION_LIFETIME,
    accept_invitation,
    decline_invitation,
    erase_invitations,
    invite_owner,
    purge_invitations,
    withdraw_invitation,
)
from refract.links.service.lifecycle import (
    delete_link,
    disable_dangerous_link,
    disable_link,
    enable_link,
    mark_expired,
    purge_chosen_links,
    purge_links,
    renew_link,
)
from refract.links.service.locked_link import LockedLink, lock_link
from refract.links.service.new_links import KeptIdentity, NewLink, check_link, check_links, digest
from refract.links.service.people import (
    add_owner,
    remove_owner,
    share_link,
    transfer_link,
    unshare_link,
)
from refract.links.service.team_defaults import set_team_defaults
from refract.links.service.teams import add_team, remove_team

__all__ = [
    "INVITATION_LIFETIME",
    "SUBSTITUTES",
    "UNDO_WINDOW",
    "CheckedChanges",
    "CreatedLink",
    "KeptIdentity",
    "LockedLink",
    "NewLink",
    "accept_invitation",
    "add_name",
    "add_owner",
    "add_team",
    "assign_owners",
    "charge_trial",
    "check_changes",
    "check_link",
    "check_links",
    "check_version",
    "create_link",
    "create_links",
    "decline_invitation",
    "delete_link",
    "digest",
    "disable_dangerous_link",
    "disable_link",
    "edit_link",
    "enable_link",
    "erase_invitations",
    "hand_over_links",
    "invite_owner",
    "lock_link",
    "mark_expired",
    "purge_chosen_links",
    "purge_invitations",
    "purge_links",
    "release_name",
    "remove_owner",
    "remove_team",
    "renew_link",
    "repair_copies",
    "replace_rules",
    "revert_link",
    "set_team_defaults",
    "share_link",
    "transfer_link",
    "undo_link",
    "unshare_link",
    "withdraw_invitation",
]
