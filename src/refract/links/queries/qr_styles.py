"""The styles of QR codes: of a link, or its primary owner's default."""

from sqlalchemy import select

from refract.core.db.session import ReadSession
from refract.identity.models import User
from refract.links.models import Link, LinkOwner
from refract.links.qr_styles import PLAIN_STYLE, QR_PREFERENCE, QrStyle, build_style, parse_style


async def load_qr_style(session: ReadSession, link_id: int) -> QrStyle:
    """Return the style of a link, of the user who is its primary owner, or a plain one."""
    query = select(Link.qr_style, User.preferences).where(Link.id == link_id)
    query = query.outerjoin(LinkOwner, LinkOwner.primary_link_id == Link.id)
    query = query.outerjoin(User, User.id == LinkOwner.user_id)
    row = (await session.execute(query)).one_or_none()
    if row is None:
        return PLAIN_STYLE
    own, preferences = row
    return parse_style(own) or get_default_style(preferences)


def get_default_style(preferences: dict[str, object] | None) -> QrStyle:
    """Return the style that a user has chosen for links without one."""
    kept = (preferences or {}).get(QR_PREFERENCE)
    return (build_style(kept) if isinstance(kept, dict) else None) or PLAIN_STYLE
