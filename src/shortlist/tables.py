"""Tables of text: how results are printed in a terminal, in a notebook and by the command line."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from shortlist.printable import printable

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

WIDTH = 100  # columns, where no terminal says how many it has
SHORT = 40  # characters of a first cell that are never broken into lines
LARGE = 10_000  # from here on a fraction says nothing any more
Cells = Sequence[str]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A title, a header, rows of text and a verdict; cells stand for themselves, never for markup.

    Others may have written them: wherever a table is shown, it is shown `printable`.

    `faint` are rows of less interest, below the others. `align` has a letter a column, l or r;
    without it the first column is on the left and the others are on the right. Without a header the
    table has no rule either."""

    header: Cells
    rows: Sequence[Cells]
    faint: Sequence[Cells] = ()
    title: str = ""
    verdict: str = ""
    align: str = ""

    def __rich__(self) -> "Group":
        from rich.console import Group
        from rich.text import Text

        above = [Text(_lines(self.title))] if self.title else []
        below = [Text(_lines(self.verdict))] if self.verdict else []
        return Group(*above, self._grid(), *below)

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        caption = f"<caption>{_html_lines(self.title)}</caption>" if self.title else ""
        head = f"<thead>{_html_row('th', self.header)}</thead>" if self.header else ""
        bodies = "".join(_html_body(rows) for rows in (self.rows, self.faint) if rows)
        verdict = f"<p>{_html_lines(self.verdict)}</p>" if self.verdict else ""
        return f"<table>{caption}{head}{bodies}</table>{verdict}"

    def _grid(self) -> "Table":
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD if self.header else None, show_header=bool(self.header))
        for column, cells in enumerate(self._columns()):
            left = self.align[column] == "l" if self.align else column == 0
            whole = column == 0 and max(map(len, cells)) <= SHORT
            name = Text(printable(self.header[column])) if self.header else ""
            table.add_column(name, justify="left" if left else "right", no_wrap=whole)
        for style, rows in ((None, self.rows), ("dim", self.faint)):
            for row in rows:
                table.add_row(*(Text(printable(cell)) for cell in row), style=style)
            table.add_section()
        return table

    def _columns(self) -> Iterator[tuple[str, ...]]:
        lines = [self.header] if self.header else []
        yield from zip(*lines, *self.rows, *self.faint, strict=True)


class Tabular:
    """What prints as tables wherever it is shown; `tables` says which."""

    __slots__ = ()

    def tables(self) -> Sequence[TextTable]:
        """What is shown, from top to bottom."""
        raise NotImplementedError

    def __rich__(self) -> "Group":
        from rich.console import Group

        return Group(*self.tables())

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


def as_text(shown: "RenderableType") -> str:
    """What rich would print, without colours, in lines that are not too long."""
    from rich.console import Console

    text = StringIO()
    Console(file=text, width=WIDTH, color_system=None).print(shown)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def figures(record: Mapping[str, object], title: str = "", verdict: str = "") -> TextTable:
    """A record as a table without a header: a line for every figure."""
    rows = [(name, readable(value)) for name, value in flat(record, " ").items()]
    return TextTable((), rows, title=title, verdict=verdict)


def flat(record: Mapping[str, object], joint: str = "_") -> dict[str, object]:
    """{"pulls": {"mean": 1}} as {"pulls_mean": 1}."""
    level: dict[str, object] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            level.update({f"{name}{joint}{inner}": each for inner, each in value.items()})
        else:
            level[name] = value
    return level


def readable(value: object) -> str:
    """A figure as a reader wants it: few digits, commas in large numbers, a dash for none."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if LARGE <= abs(value) < float("inf") else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _html_body(rows: Sequence[Cells]) -> str:
    return "<tbody>" + "".join(_html_row("td", row) for row in rows) + "</tbody>"


def _html_row(tag: str, cells: Cells) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(printable(cell))}</{tag}>" for cell in cells) + "</tr>"


def _html_lines(text: str) -> str:
    return "<br>".join(map(escape, _lines(text).split("\n")))


def _lines(text: str) -> str:
    """What stands above or below a table, in its lines."""
    return printable(text, keep="\n")
