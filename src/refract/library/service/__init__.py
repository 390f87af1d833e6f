"""What can be done with items: capture, describe, review, take back. The caller's transaction, the caller's commit."""

from refract.library.service.automatic import confirm_by_itself
from refract.library.service.capture import Made, capture
from refract.library.service.edit import change
from refract.library.service.enrichment import begin_enrichment, failed, give_back, may_write, proposed, store_page
from refract.library.service.hold import Held, hold
from refract.library.service.leaving import erase_person, export_person
from refract.library.service.review import confirm, decide, discard, retry
from refract.library.service.rules import add_rule, remove_rule, set_rules
from refract.library.service.undo import undo

__all__ = [
    "Held",
    "Made",
    "add_rule",
    "begin_enrichment",
    "capture",
    "change",
    "confirm",
    "confirm_by_itself",
    "decide",
    "discard",
    "erase_person",
    "export_person",
    "failed",
    "give_back",
    "hold",
    "may_write",
    "proposed",
    "remove_rule",
    "retry",
    "set_rules",
    "store_page",
    "undo",
]
