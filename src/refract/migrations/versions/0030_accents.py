"""Texts that searches of links and lists match, also without accents."""

from refract.core.text import strip_accents
from refract.migrations.steps import op, sa

revision = "0030"
down_revision = "0029"

BATCH_SIZE = 1_000


def upgrade() -> None:
    for name in ("links", "lists"):
        _add_plain_texts(sa.table(name, sa.column("id"), sa.column("search_text")))


def _add_plain_texts(rows: sa.TableClause) -> None:
    """Append the plain form of each line. Lines that are there already are not added again."""
    bind, last = op.get_bind(), -1
    while True:
        query = sa.select(rows.c.id, rows.c.search_text).where(rows.c.id > last)
        batch = bind.execute(query.order_by(rows.c.id).limit(BATCH_SIZE)).all()
        if not batch:
            return
        last = batch[-1].id
        for number, text in batch:
            lines = text.split("\n")
            plain = [strip_accents(line) for line in lines]
            missing = [line for line in dict.fromkeys(plain) if line not in lines]
            if missing:
                spelled = "\n".join([*lines, *missing])
                bind.execute(sa.update(rows).where(rows.c.id == number).values(search_text=spelled))


def downgrade() -> None:
    pass  # older code finds the same, and writes its own texts again with the next change
