"""Tables: cells stand for themselves in text, in a terminal and in HTML, and fit the page."""

import pytest
from rich.console import Console

from shortlist.formatting import Tabular, TextTable, figures, flat, readable

NASTY = "<b>[red]x[/red]</b>"


def test_markup_in_cells_titles_and_verdicts_is_shown_as_it_is() -> None:
    table = TextTable((NASTY, "n"), [(NASTY, "1")], [(NASTY, "2")], title=NASTY, verdict=NASTY)
    assert str(table).count(NASTY) == 5
    assert "<b>" not in table._repr_html_()
    assert table._repr_html_().count("&lt;b&gt;[red]x[/red]&lt;/b&gt;") == 5


def test_words_are_on_the_left_and_figures_on_the_right_unless_told() -> None:
    rows = [("a", "1"), ("long", "100")]
    short, long = str(TextTable((), rows)).splitlines()
    assert short.index("a") == long.index("long")
    assert len(short) == len(long)
    short, long = str(TextTable((), rows, align="rl")).splitlines()
    assert short.index("a") > long.index("long")
    assert short.index("1") == long.index("1")


def test_long_cells_are_broken_into_lines_and_never_cut() -> None:
    label = "word " * 40
    text = str(TextTable(("arm", "n"), [(label, "1")]))
    assert text.count("word") == 40
    assert max(map(len, text.splitlines())) <= 100


def test_short_names_stay_whole_where_others_are_broken() -> None:
    table = TextTable(("name", "what it is"), [("adaptive-top-k-tight", "word " * 40)], align="ll")
    console = Console(width=40)
    with console.capture() as printed:
        console.print(table)
    assert "adaptive-top-k-tight" in printed.get()


def test_lines_of_a_title_are_lines_in_html() -> None:
    assert "<caption>a<br>b</caption>" in TextTable((), [("x",)], title="a\nb")._repr_html_()


def test_a_record_is_a_table_without_a_header() -> None:
    table = figures({"n": 20_000, "pulls": {"mean": 2.5, "max": None}}, verdict="done")
    assert table.rows == [("n", "20,000"), ("pulls mean", "2.5"), ("pulls max", "-")]
    assert "<thead>" not in table._repr_html_()
    assert str(table).splitlines()[-1] == "done"
    assert flat({"pulls": {"mean": 1}, "n": 2}) == {"pulls_mean": 1, "n": 2}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "True"),
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (-12345.6, "-12,346"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (["a", 1], "a 1"),
        ("[red]", "[red]"),
    ],
)
def test_figures_are_readable(value: object, text: str) -> None:
    assert readable(value) == text


def test_several_tables_are_shown_one_below_the_other() -> None:
    class Two(Tabular):
        def tables(self) -> list[TextTable]:
            return [figures({"a": 1}), figures({"b": 2})]

    assert [line.split() for line in str(Two()).splitlines()] == [["a", "1"], ["b", "2"]]
    assert Two()._repr_html_().count("<table>") == 2


@pytest.mark.parametrize("width", [30, 50, 80])
def test_numbers_are_never_cut_however_narrow_the_terminal(width: int) -> None:
    header = ("arm", *(f"figure {column}" for column in range(9)))
    rows = [(arm, *(f"{place * 10**6 + 88512:,}" for place in range(9))) for arm in ("a", "b")]
    console = Console(width=width)
    with console.capture() as printed:
        console.print(TextTable(header, rows, verdict="done"))
    text = printed.get()
    for number in rows[0][1:]:
        assert text.count(number) >= 2
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
