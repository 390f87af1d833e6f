"""The L1 cache and the cache of missing names."""

import gc
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refract.redirect import responses
from refract.redirect.cache import CachedRedirect, NegativeCache, RecentInvalidations, RedirectCache


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def entry(target: int, version: int = 1) -> CachedRedirect:
    return CachedRedirect(target, version, b"head %d" % target)


def filled(capacity: int, paths: int, spellings: int = 16) -> tuple[RedirectCache, Time]:
    time = Time()
    table = RedirectCache(capacity, paths_per_target=spellings, monotonic=time)
    for number in range(paths):
        assert table.fill(b"/%d" % number, entry(number), table.now() + 0.001)
    time.now += 1
    return table, time


def test_what_was_filled_is_found_under_its_path() -> None:
    table, _ = filled(10, 3)

    assert table.paths[b"/1"].target == 1
    assert b"/3" not in table.paths


def test_the_table_never_outgrows_its_capacity() -> None:
    table, _ = filled(10, 1000)

    assert len(table) == 10
    assert list(table.paths) == [b"/%d" % number for number in range(990, 1000)]
    assert table.evicted == 990


def test_what_was_hit_gets_a_second_round() -> None:
    table, _ = filled(10, 10)
    table.paths[b"/0"].seen = True

    for number in range(100, 109):
        table.fill(b"/%d" % number, entry(number), table.now())
    assert b"/0" in table.paths
    assert b"/1" not in table.paths

    for number in range(200, 211):
        table.fill(b"/%d" % number, entry(number), table.now())
    assert b"/0" not in table.paths


def test_a_link_is_forgotten_in_all_its_spellings() -> None:
    table, _ = filled(10, 1)
    for path in (b"/Road", b"/road", b"/ROAD"):
        table.fill(path, entry(7), table.now())

    table.invalidate(7)

    assert list(table.paths) == [b"/0"]


def test_spellings_of_one_link_are_capped() -> None:
    table, _ = filled(100, 5, spellings=3)
    for number in range(50):
        table.fill(b"/spelling-%d" % number, entry(7), table.now())

    assert [path for path in table.paths if path.startswith(b"/s")] == [
        b"/spelling-47",
        b"/spelling-48",
        b"/spelling-49",
    ]
    assert len(table) == 8


def test_a_path_that_leads_elsewhere_now_belongs_to_the_other_link() -> None:
    table, _ = filled(10, 0)
    table.fill(b"/a", entry(1), table.now())
    table.fill(b"/a", entry(2), table.now())

    table.invalidate(1)
    assert table.paths[b"/a"].target == 2
    table.invalidate(2)
    assert len(table) == 0


@pytest.mark.parametrize("forget", ["target", "path", "key", "all", "stale"])
def test_an_answer_read_before_the_change_is_refused_after_it(forget: str) -> None:
    table, time = filled(10, 0)
    began = table.now()
    time.now += 1
    match forget:
        case "target":
            table.invalidate(5)
        case "path":
            table.invalidate_path(b"/five")
        case "key":
            table.invalidate_key(b"five")
        case "all":
            table.invalidate_all()
        case _:
            table.mark_stale()
    time.now += 1

    assert not table.fill(b"/five", entry(5), began, b"five")
    assert (len(table), table.refused) == (0, 1)
    assert table.fill(b"/five", entry(5), table.now(), b"five")


def test_an_answer_read_at_the_very_moment_of_the_change_is_refused() -> None:
    table, _ = filled(10, 0)
    table.invalidate(5)

    assert not table.fill(b"/five", entry(5), table.now())


def test_an_answer_that_took_longer_than_we_remember_is_refused() -> None:
    table, time = filled(10, 0)
    began = table.now()
    time.now += 10

    assert not table.fill(b"/five", entry(5), began)


def test_what_is_remembered_of_forgetting_is_forgotten_too() -> None:
    time = Time()
    forgotten = RecentInvalidations(time)
    for number in range(1000):
        forgotten.record(number)
        time.now += 0.1

    assert len(forgotten) <= 102
    forgotten.record(999)
    assert forgotten.has_any_since(time.now - 1, 999)


def test_stale_entries_are_no_hits_but_remain_for_an_emergency() -> None:
    table, _ = filled(10, 3)
    paths = table.paths

    table.mark_stale()
    assert table.paths is paths
    assert not paths
    stale = table.get_stale(b"/1")
    assert stale is not None
    assert stale.target == 1

    table.fill(b"/1", entry(1, version=2), table.now() + 0.001)
    assert table.paths[b"/1"].version == 2
    assert table.get_stale(b"/1") is None

    table.invalidate(2)
    assert table.get_stale(b"/2") is None
    table.invalidate_all()
    assert table.get_stale(b"/0") is None


def test_stale_entries_make_room_first() -> None:
    table, time = filled(10, 10)
    table.mark_stale()
    time.now += 1
    for number in range(20, 25):
        table.fill(b"/%d" % number, entry(number), table.now())

    assert len(table) == 10
    assert len(table.paths) == 5


def test_filling_and_forgetting_for_ever_holds_no_memory() -> None:
    table, time = filled(10, 0)
    for _ in range(1000):
        table.invalidate(1)
        time.now += 0.5
        assert table.fill(b"/a", entry(1), table.now())

    assert len(table._ring) <= 20


steps = st.lists(
    st.tuples(st.sampled_from("fhxps"), st.integers(0, 8), st.integers(0, 3)), max_size=80
)


@given(steps)
def test_index_and_paths_always_agree(todo: list[tuple[str, int, int]]) -> None:
    time = Time()
    table = RedirectCache(5, paths_per_target=2, monotonic=time)
    for what, path, target in todo:
        time.now += 1
        name = b"/%d" % path
        match what:
            case "f":
                table.fill(name, entry(target), table.now() + 0.001)
            case "h" if name in table.paths:
                table.paths[name].seen = True
            case "x":
                table.invalidate(target)
                assert all(each.target != target for each in table.paths.values())
            case "p":
                table.invalidate_path(name)
                assert name not in table.paths
                assert table.get_stale(name) is None
            case "s":
                table.mark_stale()
        known = {
            (each.target, each.path) for each in [*table.paths.values(), *table._stale.values()]
        }
        assert known == {
            (target, path) for target, paths in table._paths_by_target.items() for path in paths
        }
        assert len(table) <= 5
        assert all(len(paths) <= 2 for paths in table._paths_by_target.values())


def test_a_cached_link_costs_less_than_a_kilobyte() -> None:
    number = 10_000
    gc.collect()
    tracemalloc.start()
    table = RedirectCache(number)
    for n in range(number):
        head = responses.build_head(
            302,
            b"https://www.example.com/a/rather/long/path/to/an/article-%d?with=a&few=parameters"
            % n,
        )
        table.fill(
            b"/name-of-a-link-%d" % n,
            CachedRedirect(10**17 + n, 10**6 + n, head, 1_900_000_000_000_000_000 + n),
            table.now() + 1,
        )
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(table) == number
    assert size / number <= 1000


def test_a_negative_is_kept_for_its_time_and_no_longer() -> None:
    time = Time()
    unknown = NegativeCache(10, seconds=500, monotonic=time)
    unknown.add(b"nope", unknown.now())

    assert b"nope" in unknown
    time.now += 59
    assert b"nope" in unknown
    time.now += 1
    assert b"nope" not in unknown


def test_a_flood_of_negatives_is_bounded() -> None:
    time = Time()
    unknown = NegativeCache(10, monotonic=time)
    for number in range(1000):
        unknown.add(b"%d" % (number % 500), unknown.now())

    assert len(unknown) <= 10
    assert b"499" in unknown


def test_a_name_that_was_created_is_not_unknown_any_more() -> None:
    time = Time()
    unknown = NegativeCache(10, monotonic=time)
    began = unknown.now()
    unknown.add(b"new", began)
    time.now += 1

    unknown.invalidate(b"new")

    assert b"new" not in unknown
    assert not unknown.add(b"new", began)  # looked up before the name was there
    assert b"new" not in unknown


def test_forgetting_twice_at_one_moment_is_forgetting_once() -> None:
    time = Time()
    table = RedirectCache(4, monotonic=time)
    table.invalidate_key("x")
    table.invalidate_key("x")
    time.now += 11
    table.invalidate_key("y")

    assert table.fill(b"/x", entry(1), table.now(), "x")
