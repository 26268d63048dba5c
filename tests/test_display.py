"""Progress on stderr: nothing for what is quick, a bar on a terminal, lines elsewhere."""

import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shortlist import select
from shortlist.engine.eta import Expected
from shortlist.engine.progress import counting, display, displayed, standing
from shortlist.formatting import duration_text
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.reward_models import Bounded
from shortlist.search import Progress

SURE = Problem(9, 2, FixedConfidence(0.1, 0.05))


def within(budget: int) -> Problem:
    return Problem(9, 2, FixedBudget(budget))


def nobody_knows() -> None:
    """Nothing to be simulated."""


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("shortlist.engine.progress.time.monotonic", clock)
    return clock


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Not a fixture: between setting up and running a test, pytest puts its own stderr back."""
    with pytest.MonkeyPatch.context() as patch:
        stderr = Terminal()
        patch.setenv("TERM", "xterm")
        patch.setattr(sys, "stderr", stderr)
        yield stderr


def test_elsewhere_than_on_a_terminal_there_is_a_line_every_ten_seconds(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with display(SURE, nobody_knows) as show:
        for second in range(25):
            clock.now = 100.0 + second
            show(second, Progress(undecided=7))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "10 s: 10 pulls, 7 undecided\n20 s: 20 pulls, 7 undecided\n"


def test_a_bar_appears_on_a_terminal_after_two_seconds(clock: Clock) -> None:
    with terminal() as stderr, display(within(500), nobody_knows) as show:
        clock.now += 1.9
        show(10, Progress())
        assert stderr.getvalue() == ""
        clock.now += 0.2
        show(1234, Progress(accepted=3))
        assert "1,234 of 500 pulls, 3 accepted" in stderr.getvalue()
        length = len(stderr.getvalue())
        show(1235, Progress())
        assert len(stderr.getvalue()) == length  # not at every pull


def test_what_is_over_at_once_leaves_no_trace_on_a_terminal(clock: Clock) -> None:
    with terminal() as stderr, display(SURE, nobody_knows) as show:
        show(1, Progress())
    assert stderr.getvalue() == ""


def test_a_bar_vanishes_at_the_end_and_no_thread_draws_it(clock: Clock) -> None:
    """Worker processes are forked while it is up, and a thread would be missing there."""
    threads = threading.active_count()
    with terminal() as stderr, counting("runs", 10) as count:
        clock.now += 3
        count(4)
        assert "runs: 4 of 10" in stderr.getvalue()
        assert threading.active_count() == threads
        shown = len(stderr.getvalue())
    assert "\x1b[2K" in stderr.getvalue()[shown:]  # the line is erased
    assert "\x1b[?25h" in stderr.getvalue()[shown:]  # and the cursor is back


def test_what_is_counted_shows_the_time_left_at_the_pace_so_far(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with counting("runs", 1000) as count:
        clock.now += 20
        count(400)
    assert capsys.readouterr().err == "20 s: runs: 400 of 1,000, about 30 s left\n"


def test_the_pace_is_that_of_what_was_done_here(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """An experiment that is gone on with has most of its pulls from before."""
    with display(within(1000), nobody_knows) as show:
        show(900, Progress())
        clock.now += 10
        show(950, Progress())
    assert capsys.readouterr().err == "10 s: 950 of 1,000 pulls, about 10 s left\n"


def test_a_caller_may_know_better_how_much_time_is_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with displayed(10, before=0) as shown:
        assert not shown.due(1)
        clock.now += 10
        assert shown.due(2)
        shown.show(2, "curves", left=240)
        assert not shown.due(3)
    assert capsys.readouterr().err == "10 s: curves, about 4 min left\n"


def test_lengths_of_time_in_words() -> None:
    lengths = (0.2, 89, 150, 86 * 60, 5 * 3600, 72 * 3600)
    assert [duration_text(each) for each in lengths] == [
        "0 s",
        "89 s",
        "2 min",
        "86 min",
        "5 h",
        "3 days",
    ]


@pytest.mark.parametrize("seconds", [5, 50])
def test_nothing_is_shown_without_progress(clock: Clock, seconds: int) -> None:
    def pull(arm: int) -> int:
        clock.now += seconds
        return arm

    with terminal() as stderr:
        select(pull, arms=2, k=1, budget=10, progress=False)
    assert stderr.getvalue() == ""


def test_a_search_is_described_by_what_is_known() -> None:
    assert standing(1500, SURE, Progress(round=2)) == "1,500 pulls"
    assert (
        standing(5, within(9), Progress(1, 2, 3, 4, 0.125))
        == "5 of 9 pulls, 2 accepted, 4 undecided, bound 0.125"
    )
    assert standing(1, SURE, Progress()) == "1 pull"
    assert standing(1, within(1), Progress()) == "1 of 1 pull"


def test_a_bound_is_in_the_units_of_the_rewards() -> None:
    points = Problem(9, 2, FixedConfidence(5, 0.05), Bounded(0, 100))
    assert standing(7, points, Progress(bound=0.125)) == "7 pulls, bound 12.5"


def test_money_is_shown_where_pulls_cost_it() -> None:
    paid = Problem(2, 1, FixedBudget(12.5), costs=(1.0, 2.0))
    assert standing(3, paid, Progress(), 5.5) == "3 pulls for 5.5 of 12.5"
    endless = Problem(2, 1, FixedConfidence(0.1, 0.05), costs=(1.0, 2.0))
    assert standing(3, endless, Progress(), 5.5) == "3 pulls for 5.5"
    assert standing(3, SURE, Progress(), 3.0) == "3 pulls"


def test_what_is_expected_is_told_in_pulls_and_in_time(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with displayed(None) as shown:
        shown.due(100)
        clock.now += 10
        shown.show_expected(150, "150 pulls", Expected(200, 1000))
        shown.show_expected(100, "100 pulls", Expected(1, 2))
    assert capsys.readouterr().err == (
        "10 s: 150 pulls, about 200 more (90 %: 1,000), 40 s left (90 %: 3 min)\n"
        "10 s: 100 pulls, about 1 more (90 %: 2)\n"
    )


def test_a_narrow_terminal_shows_all_of_it(clock: Clock) -> None:
    with terminal() as stderr, displayed(None, before=0) as shown:
        shown.show_expected(1000, "1,000 pulls, 5 undecided, bound 0.158", Expected(973, 4351))
        assert "5 undecided, bound 0.158" in stderr.getvalue()
        assert "about 973 more (90 %: 4,351)" in stderr.getvalue()


NOTEBOOK = """
import marimo
app = marimo.App()

@app.cell
def _():
    import time
    from shortlist.engine.progress import _surface
    surface = _surface()
    surface.draw(3.0, 5, 10, "5 pulls, 4 undecided", "about 5 more")
    time.sleep(surface.pause)  # as between any two
    surface.draw(4.0, 6, 10, "6 pulls, 4 undecided", "about 4 more")
    return surface,

@app.cell
def _():
    from shortlist.engine.progress import _surface as again
    other = again()
    other.draw(3.0, 5, None, "7 pulls, over")
    other.close()
"""


def test_a_cell_of_marimo_shows_a_spinner_until_the_search_ends(tmp_path: Path) -> None:
    pytest.importorskip("marimo")
    notebook, page = tmp_path / "notebook.py", tmp_path / "notebook.html"
    notebook.write_text(NOTEBOOK)
    command = [sys.executable, "-m", "marimo", "export", "html", "--no-include-code"]
    subprocess.run([*command, str(notebook), "-o", str(page)], check=True, timeout=120)
    shown = page.read_text(encoding="utf-8")
    assert "6 pulls, 4 undecided" in shown
    assert "60%, about 4 more" in shown
    assert "5 pulls" not in shown
    assert "7 pulls" not in shown
