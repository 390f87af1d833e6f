"""Operations on items: capture, enrich, review, undo.

The caller owns the transaction and commits.
"""

from refract.library.service.capture import CapturedItem, capture_item
from refract.library.service.edit import edit_item
from refract.library.service.enrichment import (
    apply_proposal,
    enqueue_enrichment,
    lock_item_for_job,
    mark_failed,
    refund_enrichment,
    store_page,
)
from refract.library.service.erasure import erase_item
from refract.library.service.lock import LockedItem, lock_item
from refract.library.service.review import (
    auto_confirm_item,
    confirm_item,
    decide_suggestions,
    discard_item,
    restore_item,
    retry_item,
    undo_item,
)
from refract.library.service.rules import add_rule, delete_rule, replace_rules

__all__ = [
    "CapturedItem",
    "LockedItem",
    "add_rule",
    "apply_proposal",
    "auto_confirm_item",
    "capture_item",
    "confirm_item",
    "decide_suggestions",
    "delete_rule",
    "discard_item",
    "edit_item",
    "enqueue_enrichment",
    "erase_item",
    "lock_item",
    "lock_item_for_job",
    "mark_failed",
    "refund_enrichment",
    "replace_rules",
    "restore_item",
    "retry_item",
    "store_page",
    "undo_item",
]
