"""The time left is what tasks of a kind took, shared among the processes."""

import pytest

from shortlist.reproduction.progress import Progress, in_words, seconds_left


def test_tasks_take_as_long_as_their_kind_did_and_unknown_kinds_as_long_as_the_average() -> None:
    took = [("a", 1.0), ("a", 3.0), ("b", 8.0)]
    assert seconds_left(["a", "a", "b", "new"], took, jobs=2) == (2 + 2 + 8 + 4) / 2
    assert seconds_left([], took, jobs=2) == 0


def test_nothing_is_known_before_the_first_task_ends() -> None:
    assert seconds_left(["a"], [], jobs=1) is None


def test_where_nobody_watches_a_line_comes_only_when_it_is_due(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress(jobs=1)
    progress.took.append(("a", 30.0))
    progress.tell("curves", 1, ["a"] * 9)
    progress.due = 0
    progress.tell("curves", 2, ["a"] * 8)
    progress.tell("curves", 3, ["a"] * 7)
    assert capsys.readouterr().err == "curves: 2 of 10, about 4 min left\n"


def test_lengths_of_time_in_words() -> None:
    assert [in_words(seconds) for seconds in (0.2, 89, 150)] == ["0 s", "89 s", "2 min"]
