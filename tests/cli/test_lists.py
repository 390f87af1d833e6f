"""`refract lists`: an operator takes down a list."""

import json
from pathlib import Path

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.lists import service
from refract.lists.access import ListCaller
from tests import make
from tests.redirect.outside import Outside
from tests.serving import refract


async def _publish(session: WriteSession, rt: Runtime) -> None:
    who = ListCaller(creator="c" * 64)
    draft = await make.list_of(session, rt, who, "https://evil.example/login", title="Win a prize")
    await service.set_draft_slug(session, make.space(rt), who, draft.id, "prizes")
    await service.publish_list(session, make.space(rt), who, draft.id)


def test_a_list_is_found_removed_and_restored(tmp_path: Path) -> None:
    data = str(tmp_path / "data")

    def lists(*words: str) -> tuple[int, str]:
        done = refract("lists", *words, "--data-dir", data)
        return done.returncode, done.stdout + done.stderr

    assert refract("migrate", "--data-dir", data).returncode == 0
    Outside(Path(data)).write(_publish)

    code, said = lists("list", "evil.example", "--anonymous", "--json")
    assert (code, [one["slug"] for one in json.loads(said)]) == (0, ["prizes"])
    assert "prizes" in lists("list")[1]
    code, said = lists("remove", "http://127.0.0.1:8000/prizes")
    assert (code, said) == (0, "Removed prizes. Restore it with: refract lists restore prizes\n")
    assert lists("remove", "prizes") == (1, 'There\'s no list "prizes".\n')
    assert "prizes" in lists("list", "--removed")[1]
    assert lists("restore", "prizes") == (0, "Restored prizes.\n")
    assert "prizes" in lists("list")[1]
    assert refract("teams", "create", "Crew", "--data-dir", data).returncode == 0
    assert lists("transfer", "prizes", "crew") == (0, "Transferred prizes to crew.\n")
    assert "Crew" in lists("list")[1]
    code, said = lists("transfer", "prizes", "nobodys")
    assert (code, said) == (1, "Team not found.\n")
