"""API of the search across links, lists and items."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from refract.core.errors import Invalid
from refract.core.schemas import Id, OutputSchema
from refract.home.search import SearchKind, search_all
from refract.identity.dependencies import ReadCaller
from refract.web.dependencies import Rt, api_router
from refract.web.problems import problems

router = api_router("/search", "library")
ROUTERS = (router,)


class UnknownKind(Invalid):
    """You can't search for "{kind}". Use one of {known}."""


class SearchHitOut(OutputSchema):
    """A search hit. `url` is its public URL, or null."""

    kind: SearchKind
    id: Id
    title: str = Field(examples=["/roadmap"])
    note: str = Field(examples=["Roadmap 2026"])
    url: str | None


class SearchHitPage(OutputSchema):
    items: list[SearchHitOut]
    next_cursor: str | None = None


ALL_KINDS = ",".join(f"{kind}s" for kind in SearchKind)
SearchKinds = Annotated[
    str,
    Query(
        max_length=100,
        description="Kinds to search, separated by commas.",
        examples=["links,lists"],
    ),
]


@router.get("", responses=problems(UnknownKind))
async def search_everything(
    actor: ReadCaller,
    rt: Rt,
    q: Annotated[
        str, Query(min_length=1, max_length=200, description="Words that must all occur.")
    ],
    kinds: SearchKinds = ALL_KINDS,
    limit: Annotated[
        int, Query(ge=1, le=50, description="Maximum number of hits of each kind.")
    ] = 10,
) -> SearchHitPage:
    """Search your links, lists and items, and public links of others.

    Returns the newest of each kind, and your own links first.
    """
    found = await search_all(rt, actor, q, parse_kinds(kinds), limit)
    return SearchHitPage(items=[SearchHitOut.model_validate(hit) for hit in found])


def parse_kinds(typed: str) -> list[SearchKind]:
    known = {f"{kind}s": kind for kind in SearchKind}
    words = [word.strip() for word in typed.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise UnknownKind(kind=word[:40], known=", ".join(known))
    return [known[word] for word in words]
