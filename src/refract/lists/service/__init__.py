"""Everything that changes lists. The caller opens the transaction, and has looked at addresses before."""

from refract.lists.service.deletion import UNDO_TIME, delete_list, release_name, undo_delete
from refract.lists.service.drafts import claim_lists, create_list, draft_of, edit_list, hold, hold_draft, wish_slug
from refract.lists.service.entries import Address, add_entries, edit_entry, remove_entry, reorder, shift_entry
from refract.lists.service.fill import fill_entry, give_up_waiting, settle_checks
from refract.lists.service.publishing import new_edition, publish
from refract.lists.service.upkeep import KEPT, erase_lists, erase_old, erase_person, forget_actions, forget_slugs

__all__ = [
    "KEPT",
    "UNDO_TIME",
    "Address",
    "add_entries",
    "claim_lists",
    "create_list",
    "delete_list",
    "draft_of",
    "edit_entry",
    "edit_list",
    "erase_lists",
    "erase_old",
    "erase_person",
    "fill_entry",
    "forget_actions",
    "forget_slugs",
    "give_up_waiting",
    "hold",
    "hold_draft",
    "new_edition",
    "publish",
    "release_name",
    "remove_entry",
    "reorder",
    "settle_checks",
    "shift_entry",
    "undo_delete",
    "wish_slug",
]
