"""What an enrichment job may write, and only while the item is assigned to it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.core.urls import BadUrl, parse_web_url
from refract.jobs.queue import enqueue
from refract.library import search
from refract.library.enrichment.reasons import REASON_SEPARATOR
from refract.library.enrichment.types import EnrichmentProposal, ExtractedPage, SuggestedTag
from refract.library.models import (
    EnrichmentNotice,
    FieldSource,
    Item,
    ItemStatus,
    SavedPage,
    Suggestion,
    SuggestionStatus,
)
from refract.library.payloads import EnrichItem
from refract.library.queries.items import lock_item_row
from refract.library.recognition import compute_url_digest
from refract.library.service import quota
from refract.library.service import storage as service_storage
from refract.tags.grammar import personal_key

_WEAK_CONFIDENCE = 0.5
"""Weaker new names of the offline tier are dropped once the model has made its suggestions."""


async def enqueue_enrichment(
    session: WriteSession,
    rt: Runtime,
    item: Item,
    *,
    run_at: datetime | None = None,
    resumed: bool = False,
) -> int:
    """Enqueue a job that enriches an item; from now on only this job may write to it."""
    job_id = await enqueue(
        session, rt, EnrichItem(item_id=item.id, resumed=resumed), run_at=run_at, share=item.user_id
    )
    assert job_id is not None  # noqa: S101 - without a dedup key there always is one
    item.job_id = job_id
    return job_id


async def lock_item_for_job(session: WriteSession, job: EnrichItem) -> Item | None:
    """Return the locked item if it is still assigned to this job.

    None if it was discarded, confirmed or assigned to another job meanwhile.
    """
    item = await lock_item_row(session, job.item_id)
    ours = item is not None and (job.claim is None or item.job_id == job.claim.job_id)
    return item if item is not None and ours and item.status == ItemStatus.ENRICHING else None


async def store_page(session: WriteSession, rt: Runtime, item: Item, page: ExtractedPage) -> None:
    """Save a fetched page, and the canonical URL that it names."""
    values: dict[str, Any] = {
        "url": page.url,
        "canonical_url": page.canonical_url,
        "title": page.title,
        "description": page.description,
        "author": page.author,
        "site": page.site,
        "language": page.language,
        "published_at": page.published_at,
        "image_url": page.image_url,
        "keywords": list(page.keywords),
        "text": page.text,
        "html": page.html,
        "fetched_at": rt.clock.now(),
    }
    kept = await session.get(SavedPage, item.id)
    before = service_storage.count_bytes(kept.text, kept.html) if kept is not None else 0
    if kept is None:
        kept = SavedPage(item_id=item.id, **values)
        session.add(kept)
    else:
        for name, value in values.items():
            setattr(kept, name, value)
    try:
        item.canonical_digest = compute_url_digest(
            parse_web_url(page.canonical_url or page.url, limit=8192)
        )
    except BadUrl:
        item.canonical_digest = item.url_digest
    await session.flush()
    await _charge_page_storage(session, rt, item, kept, before)


async def _charge_page_storage(
    session: WriteSession, rt: Runtime, item: Item, page: SavedPage, before: int
) -> None:
    """Charge a page to its user's storage.

    If that is full, its metadata is kept without its text.
    """
    more = service_storage.StorageUsage(
        bytes=service_storage.count_bytes(page.text, page.html) - before
    )
    if more.bytes and not await service_storage.try_to_add_usage(session, rt, item.user_id, more):
        page.text = page.html = ""
        await session.flush()
        await service_storage.adjust_usage(
            session, item.user_id, service_storage.StorageUsage(bytes=-before)
        )


async def apply_proposal(
    session: WriteSession, rt: Runtime, item: Item, proposal: EnrichmentProposal, *, final: bool
) -> None:
    """Fill title and summary unless a user wrote them, and store the tags as suggestions.

    A proposal that is not final shows the result of the offline tier while the model is still
    working.
    """
    now = rt.clock.now()
    _fill_field(item, "title", proposal.title, proposal)
    _fill_field(item, "summary", proposal.summary, proposal)
    item.enrichment = proposal.by.value
    await _store_suggestions(session, rt, item, proposal)
    if final:
        item.set_status(ItemStatus.READY_TO_CONFIRM)
        item.failure = None
    item.version += 1
    item.updated_at = now
    await session.flush()
    await search.index_item(session, item)


def _fill_field(item: Item, name: str, value: str | None, proposal: EnrichmentProposal) -> None:
    if value and getattr(item, f"{name}_source") != FieldSource.USER:
        setattr(item, name, value)
        setattr(item, f"{name}_source", proposal.by.value)


async def _store_suggestions(
    session: WriteSession, rt: Runtime, item: Item, proposal: EnrichmentProposal
) -> None:
    known = {
        suggestion.normalised_name: suggestion
        for suggestion in await session.scalars(
            select(Suggestion).where(Suggestion.item_id == item.id)
        )
    }
    proposed = {personal_key(tag.name): tag for tag in proposal.tags}
    if proposal.by == "AI":
        others = [suggestion for key, suggestion in known.items() if key not in proposed]
        await _drop_weak_suggestions(session, others)
    new_ids = rt.ids.next_ids(len(proposed))
    for new_id, (key, tag) in zip(new_ids, proposed.items(), strict=True):
        if key in known:
            _strengthen_suggestion(known[key], tag)
            continue
        session.add(
            Suggestion(
                id=new_id,
                user_id=item.user_id,
                item_id=item.id,
                name=tag.name,
                normalised_name=key,
                source=tag.source.value,
                confidence=tag.confidence,
                reason=tag.reason,
                status=SuggestionStatus.PENDING.value,
                created_at=rt.clock.now(),
            )
        )


async def _drop_weak_suggestions(session: WriteSession, suggestions: Sequence[Suggestion]) -> None:
    weak = [
        suggestion.id
        for suggestion in suggestions
        if suggestion.status == SuggestionStatus.PENDING
        and suggestion.confidence < _WEAK_CONFIDENCE
        and suggestion.source == "SYSTEM"
    ]
    if weak:
        await session.execute(delete(Suggestion).where(Suggestion.id.in_(weak)))


def _strengthen_suggestion(known: Suggestion, proposed: SuggestedTag) -> None:
    """Raise the confidence of a suggestion that both tiers made."""
    if known.status == SuggestionStatus.PENDING and known.source != proposed.source:
        known.reason = f"{known.reason}{REASON_SEPARATOR}{proposed.reason}"[:200]
        known.confidence = round(min(0.97, max(known.confidence, proposed.confidence) + 0.1), 2)
        known.source = proposed.source.value


async def mark_failed(session: WriteSession, rt: Runtime, item: Item, why: str) -> None:
    """Record that enrichment failed: the user can retry, confirm or discard the item."""
    item.failure = why[:300]
    item.set_status(ItemStatus.FAILED)
    item.version += 1
    item.updated_at = rt.clock.now()
    await session.flush()
    await search.index_item(session, item)


async def refund_enrichment(
    session: WriteSession, rt: Runtime, item: Item, note: EnrichmentNotice
) -> None:
    """Refund an item that the model did not enrich, once, and record the reason."""
    item.note = note.value
    if item.charged_job_id is not None:
        await quota.refund_quota(session, rt, item.charged_job_id, note.value)
        item.charged_job_id = None
