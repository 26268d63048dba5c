"""The one place that makes text that others wrote fit to be shown.

Labels, names of experiments and of algorithms, and what a program has to say may hold anything. A
terminal would obey their control characters (C0 and C1), characters that turn the direction of
writing would let a line read as another, and a lone surrogate can be written nowhere.

Numbers that carry a promise, as text: the one place that rounds them.

    regret bound, upper end    up
    confidence, lower end      down
    interval                   outward, to as many digits as its width has: two texts, never one
    mean                       to the nearest, at the digits of its interval

What is printed then never claims more than what was computed. Numbers are taken by their shortest
digits (0.05 in binary is a little more than 0.05): read back as a float, a text is on the same side
of the number as it is here. JSON and CSV do not come here: they have all digits.

Tables of text: how results are printed in a terminal, in a notebook and by the command line."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from html import escape
from io import StringIO
from math import ceil, inf, isfinite, isnan
from typing import TYPE_CHECKING


def printable(text: str, keep: str = "") -> str:
    """A text that leaves a terminal alone: unseen characters are spelt, but for those to keep."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode()
        for each in text
    )


BOUND = 4  # significant digits of a bound, and of the probability that it fails
WIDTH = 3  # significant digits of the width of an interval
POINT = 6  # significant digits of an interval without a width
MOST = 17  # significant digits of a float
PLAIN = -4, 15  # powers of ten that are written without an exponent
EXACT = Context(prec=700, Emin=-(10**6), Emax=10**6)  # no difference of two floats is longer
LARGE = 10_000  # from which on a number with a fraction has commas; whole ones always have
ROUNDING = Decimal("1e-14")  # relative width of an interval that is a point but for its rounding
NEXT_TO_1 = Decimal("1e-16")  # a confidence that is 1 as a float may be as far below 1


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit that means, their differences and bounds are shown in; data stay in raw units.

    Numbers are multiplied as decimals before they are rounded, so a bound is still rounded up."""

    power: int = 0  # of ten, that raw numbers are multiplied by
    mark: str = ""  # behind a mean or the interval of a mean
    points: str = ""  # behind a difference in a table
    spelled: str = ""  # behind a difference in a sentence


RAW = Unit()
PERCENT = Unit(2, "%", " points", " percentage points")
PAIRED = " … "  # between the ends of an interval


def unit_of(name: str | None) -> Unit:
    """The unit of the setting `unit`."""
    return RAW if name is None else PERCENT


def bound_text(bound: float, digits: int = BOUND, unit: Unit = RAW) -> str:
    """A bound from above on a difference, rounded up."""
    return _spelled(_significant(bound, digits, ROUND_CEILING, power=unit.power), unit)


def difference_text(value: float, unit: Unit = RAW) -> str:
    """An estimated difference in a sentence, to a few digits."""
    return _spelled(readable(float(value) * 10**unit.power), unit)


def below_text(bound: float, unit: Unit = RAW) -> str:
    """A bound from below on a difference, rounded down."""
    return _spelled(_significant(bound, BOUND, ROUND_FLOOR, power=unit.power), unit)


def _spelled(number: str, unit: Unit) -> str:
    return number + (unit.spelled.removesuffix("s") if number == "1" else unit.spelled)


def interval_text(low: float, high: float, *, sign: bool = False, unit: Unit = RAW) -> str:
    """Both ends rounded outward, "low … high"; a dash if neither is known.

    With a `sign` it is the interval of a difference."""
    if not isfinite(low) and not isfinite(high):
        return "-"
    return PAIRED.join(end_texts(low, high, sign=sign, unit=unit)) + _mark(unit, sign)


def end_texts(low: float, high: float, *, sign: bool = False, unit: Unit = RAW) -> tuple[str, str]:
    """Both ends rounded outward, and different if the ends are; without the mark of the unit."""
    place = _place(low, high)
    below = _at(low, place, ROUND_FLOOR, sign, unit.power)
    above = _at(high, place, ROUND_CEILING, sign, unit.power)
    return (_short(below), _short(above)) if below == above else (below, above)


def mean_text(
    mean: float | None,
    low: float,
    high: float,
    *,
    sign: bool = False,
    among: tuple[float, float] | None = None,
    unit: Unit = RAW,
) -> str:
    """An estimate with the digits of the interval around it; a dash if there is no estimate.

    Without an interval, its digits are those of the range that all estimates lie in, `among`. With
    a `sign` it is a difference."""
    if mean is None or isnan(mean):
        return "-"
    mark = _mark(unit, sign)
    if not isfinite(high - low):
        if among is None or not isfinite(among[1] - among[0]):
            return _significant(mean, BOUND, ROUND_HALF_EVEN, sign, unit.power) + mark
        low, high = among
    nearest = _at(mean, _place(low, high), ROUND_HALF_EVEN, sign, unit.power)
    return (_short(nearest) if low == high else nearest) + mark


def _mark(unit: Unit, sign: bool) -> str:
    return unit.points if sign else unit.mark


def range_of(means: Iterable[float | None]) -> tuple[float, float]:
    """The range that all estimates lie in."""
    known = [mean for mean in means if mean is not None and isfinite(mean)]
    return min(known, default=inf), max(known, default=-inf)


def confidence_text(confidence: float) -> str:
    """A probability with which something holds, rounded down and below 1."""
    return _short(_plain(_sure(confidence)))


def percent_text(confidence: float) -> str:
    """The same in percent, without the sign for it."""
    return _short(_plain(_sure(confidence) * 100))


def failures_text(confidence: float, of: int = 100) -> str:
    """How many of `of` statements fail at most, if each holds with this confidence."""
    return _short(_plain((1 - _sure(confidence)) * of))


def chance_text(chance: float) -> str:
    """An estimated probability in percent; what is not certain is not called so."""
    if isnan(chance):
        return "-"
    if 0 < chance < 0.01:
        return "<1%"
    return ">99%" if 0.99 < chance < 1 else f"{chance:.0%}"


def given_text(value: float, unit: Unit = RAW) -> str:
    """A number that was given, with all its digits; in a unit, it is a difference."""
    if unit is RAW:
        return repr(float(value)).removesuffix(".0")
    return _spelled(_short(_plain(_decimal(value).scaleb(unit.power, EXACT))), unit)


def amount_text(value: float) -> str:
    """What pulls cost, to the nearest: six digits, or all before the point."""
    if not isfinite(value):
        return f"{value}"
    exact = _decimal(value)
    return _short(_plain(_quantized(exact, min(0, exact.adjusted() - 5), ROUND_HALF_EVEN)))


def _sure(confidence: float) -> Decimal:
    """A confidence rounded down, to a few digits of what is missing to 1 or of itself."""
    exact = min(_decimal(confidence), 1 - NEXT_TO_1)
    place = min(exact or Decimal(1), 1 - exact).adjusted() - BOUND + 1
    return _quantized(exact, place, ROUND_FLOOR)


def _place(low: float, high: float) -> int:
    """The power of ten to which the ends of an interval, and a mean in it, are rounded."""
    known = [_decimal(end) for end in (low, high) if isfinite(end)]
    largest = max((abs(end) for end in known), default=Decimal(0))
    if len(known) < 2:
        return largest.adjusted() - WIDTH + 1
    width = EXACT.subtract(known[1], known[0])
    digits, measured = (WIDTH, width) if width > ROUNDING * largest else (POINT, largest)
    return max(measured.adjusted() - digits + 1, largest.adjusted() - MOST + 1)


def _at(value: float, place: int, rounding: str, sign: bool = False, power: int = 0) -> str:
    """A number rounded to that power of ten, times ten to the `power`; infinities as they are."""
    if not isfinite(value):
        return f"{value:+}" if sign else f"{value}"
    rounded = _quantized(_decimal(value), place, rounding)
    return _plain(rounded.scaleb(power, EXACT), sign)


def _significant(
    value: float, digits: int, rounding: str, sign: bool = False, power: int = 0
) -> str:
    """A number rounded to this many significant digits, times ten to the `power`."""
    if not isfinite(value):
        return f"{value}"
    exact = _decimal(value)
    rounded = Context(prec=digits, rounding=rounding, Emin=-(10**6)).plus(exact)
    return _short(_plain(rounded.scaleb(power, EXACT), sign))


def _plain(value: Decimal, sign: bool = False) -> str:
    """Its digits with commas, or with an exponent where there would be many zeros."""
    mark = "+" if sign else ""
    value = abs(value) if value.is_zero() else value
    first = value.adjusted()
    if value.is_zero() and first < PLAIN[0] - BOUND:
        return f"{mark}0"
    if value.is_zero() or PLAIN[0] <= first <= PLAIN[1]:
        text = f"{value:{mark}f}"
        return f"{value:{mark},f}" if "." not in text or abs(value) >= LARGE else text
    mantissa = value.scaleb(-first, EXACT)
    return f"{mantissa:{mark}f}e{first:+03d}"  # two digits of the exponent, as floats have


def _short(text: str) -> str:
    """The same number without zeros behind its point that say nothing."""
    number, mark, exponent = text.partition("e")
    return (number.rstrip("0").rstrip(".") if "." in number else number) + mark + exponent


def _quantized(value: Decimal, place: int, rounding: str) -> Decimal:
    return value.quantize(Decimal((0, (1,), place)), rounding, EXACT)


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))


if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType
    from rich.table import Table

COLUMNS = 100  # columns, where no terminal says how many it has
MOST_WIDTH = 10**6  # columns of a table that has as many as it wants
WORD = 16  # characters of a word that are never broken into lines
SHORT = 40  # characters of a first cell that are never broken into lines
LARGE_IN_TABLES = 10_000  # from here on a fraction says nothing any more
BOLD = ' style="font-weight: bold"'  # rows above those of less interest, such as the chosen arms
EDGE = ' style="border-left: 4px solid #0072B2"'  # their first cells, blue as in plots
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

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterator[RenderableType]":
        from rich.text import Text

        if self.title:
            yield Text(_lines(self.title))
        for columns in self._that_fit(console, options):
            yield self._grid(columns)
        if self.verdict:
            yield Text(_lines(self.verdict))

    def _that_fit(self, console: "Console", options: "ConsoleOptions") -> Iterator[list[int]]:
        """The columns of every table below each other; the first column leads each of them."""
        width, any_width = options.max_width, options.update(max_width=MOST_WIDTH)

        def fits(columns: list[int]) -> bool:
            return console.measure(self._grid(columns), options=any_width).minimum <= width

        here: list[int] = []
        every = [column for column, _ in enumerate(self._columns())]
        for column in [] if fits(every) else every:
            if len(here) > 1 and not fits([*here, column]):
                yield here
                here = [0]
            here = [*here, column]
        yield here or every

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        caption = f"<caption>{_html_lines(self.title)}</caption>" if self.title else ""
        head = f"<thead>{_html_row('th', self.header)}</thead>" if self.header else ""
        marked = BOLD if self.faint else ""
        parts = ((self.rows, marked), (self.faint, ""))
        bodies = "".join(_html_body(rows, style) for rows, style in parts if rows)
        verdict = f"<p>{_html_lines(self.verdict)}</p>" if self.verdict else ""
        return f"<table>{caption}{head}{bodies}</table>{verdict}"

    def _grid(self, shown: Sequence[int]) -> "Table":
        """These columns; a number is never broken into lines, nor is a short cell of numbers."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD if self.header else None, show_header=bool(self.header))
        every = list(self._columns())
        for column in shown:
            cells = every[column]
            left = self.align[column] == "l" if self.align else column == 0
            whole = column == 0 and max(map(len, cells)) <= SHORT
            name = Text(printable(self.header[column])) if self.header else ""
            table.add_column(
                name,
                justify="left" if left else "right",
                no_wrap=whole,
                min_width=_least_width(cells[bool(self.header) :], most=WORD if left else None),
                overflow="fold",
            )
        for style, rows in ((None, self.rows), ("dim", self.faint)):
            for row in rows:
                table.add_row(*(Text(printable(row[column])) for column in shown), style=style)
            table.add_section()
        return table

    def _columns(self) -> Iterator[tuple[str, ...]]:
        lines = [self.header] if self.header else []
        yield from zip(*lines, *self.rows, *self.faint, strict=True)


def _least_width(cells: Sequence[str], most: int | None) -> int:
    """Columns that cells need: a short one stays in one line, a longer one breaks at spaces.

    Only words, which have a `most`, may be broken themselves; a number never is."""
    broken = ([cell] if len(cell) <= SHORT and most is None else cell.split() for cell in cells)
    least = max((len(printable(part)) for parts in broken for part in parts), default=0)
    return least if most is None else min(least, most)


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
    Console(file=text, width=COLUMNS, color_system=None).print(shown)
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
        return f"{value:,.0f}" if LARGE_IN_TABLES <= abs(value) < float("inf") else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _html_body(rows: Sequence[Cells], style: str) -> str:
    edge = EDGE if style else ""
    return f"<tbody{style}>" + "".join(_html_row("td", row, edge) for row in rows) + "</tbody>"


def _html_row(tag: str, cells: Cells, first: str = "") -> str:
    styles = (first, *("" for _ in cells[1:]))
    each = zip(cells, styles, strict=True)
    inner = "".join(f"<{tag}{style}>{escape(printable(cell))}</{tag}>" for cell, style in each)
    return f"<tr>{inner}</tr>"


def _html_lines(text: str) -> str:
    return "<br>".join(map(escape, _lines(text).split("\n")))


def _lines(text: str) -> str:
    """What stands above or below a table, in its lines."""
    return printable(text, keep="\n")


def duration_text(seconds: float) -> str:
    """A length of time for people."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 36)):
        if seconds < most * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86400:,.0f} days"


def day_text(seconds: float) -> str:
    """The day of a point in time, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def days_text(period: tuple[float, float]) -> str:
    """The days from the begin to the end of a period; the first one counts."""
    return plural(max(1, ceil((period[1] - period[0]) / 86400)), "day")


def plural(count: int, noun: str) -> str:
    """1 pull, 2 pulls."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def known_before(scores: int) -> list[str]:
    """A line on the scores of a test set that were known before the first pull, if any were."""
    were, them = ("was", "it") if scores == 1 else ("were", "them")
    line = f"{plural(scores, 'score')} {were} known before: means and intervals include {them}."
    return [line] if scores else []


def plain(value: object) -> object:
    """The same value in what JSON knows: no arrays, no infinities."""
    if hasattr(value, "tolist"):  # an array, or one of its numbers
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def no_formula(value: object) -> object:
    """A value for a CSV file; no spreadsheet evaluates a text as a formula."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value
