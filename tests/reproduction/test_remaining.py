"""The time left is what tasks of a kind took, shared among the processes."""

from shortlist.reproduction.runs import TaskTimes


def test_tasks_take_as_long_as_their_kind_did_and_unknown_kinds_as_long_as_the_average() -> None:
    pace = TaskTimes(workers=2)
    for kind, seconds in (("a", 1.0), ("a", 3.0), ("b", 8.0)):
        pace.note(kind, seconds)
    assert pace.seconds_left(["a", "a", "b", "new"]) == (2 + 2 + 8 + 4) / 2
    assert pace.seconds_left([]) == 0


def test_nothing_is_known_before_the_first_task_ends() -> None:
    assert TaskTimes(workers=1).seconds_left(["a"]) is None
