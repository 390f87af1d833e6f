"""The naming rules that hold everywhere; `python -m tools.style --list` shows the rest."""

from pathlib import Path

from tools import style


def test_no_class_name_is_defined_twice() -> None:
    assert style.find_repeated_classes(style.read_modules()) == {}


def test_exceptions_are_bound_to_exc() -> None:
    assert style.find_caught_names(style.read_modules()) == []


def test_docstrings_are_plain_english() -> None:
    assert style.find_dialect(style.read_modules()) == []


def test_limits_are_named_max_and_min() -> None:
    assert style.find_superlatives(style.read_modules()) == []


def test_loop_variables_are_named_after_their_elements() -> None:
    assert style.find_vague_loops(style.read_modules()) == []


def test_no_module_is_a_fragment_of_its_only_importer() -> None:
    assert style.find_fragments(style.read_modules()) == []


def test_no_line_is_too_long() -> None:
    assert style.find_long_lines() == []


def test_functions_are_short() -> None:
    assert style.find_long_functions(style.read_modules()) == []


def test_the_measures_see_what_breaks_a_rule(tmp_path: Path) -> None:
    package = tmp_path / "refract"
    package.mkdir()
    (package / "first.py").write_text(
        '"""Whoever asks."""\n\nMOST_ROWS = 5\n\n\nclass Row:\n    pass\n'
    )
    (package / "second.py").write_text(
        "from refract.first import Row as Other\n\n\nclass Row(Other):\n    pass\n\n\ndef"
        " run(rows):\n    try:\n        return [one for one in rows]\n    except ValueError as"
        " wrong:\n        raise wrong\n"
    )
    modules = style.read_modules(package)

    assert set(style.find_repeated_classes(modules)) == {"Row"}
    assert [spot.text for spot in style.find_caught_names(modules)] == ["wrong"]
    assert [spot.text for spot in style.find_superlatives(modules)] == ["MOST_ROWS"]
    assert [spot.text for spot in style.find_dialect(modules)] == ["Whoever"]
    assert [spot.text for spot in style.find_vague_loops(modules)] == ["one"]
    assert [spot.path.name for spot in style.find_fragments(modules)] == ["first.py"]


def test_the_length_of_a_function_is_that_of_its_body(tmp_path: Path) -> None:
    package = tmp_path / "refract"
    package.mkdir()
    parameters = "".join(f"    option_{number},\n" for number in range(50))
    body = "    pass\n" * (style.MAX_BODY_LINES - 1)
    (package / "lengths.py").write_text(
        f'def declare(\n{parameters}):\n    """Do."""\n{body}\n\n'
        f'async def do():\n    """Do."""\n    pass\n{body}'
    )

    found = style.find_long_functions(style.read_modules(package))

    assert [spot.text for spot in found] == [f"do: {style.MAX_BODY_LINES + 1} lines"]
