"""Work in several processes: the same results in the same order, and nothing left behind when it is interrupted."""

import time
from multiprocessing import active_children
from pathlib import Path

import pytest

from shortlist.simulation.spread import spread


def square(number: int) -> int:
    return number * number


def finish_late(file: Path | None) -> None:
    if file is not None:
        time.sleep(3)
        file.touch()


def fail(number: int) -> None:
    raise ValueError(f"no {number}")


@pytest.mark.parametrize("jobs", [1, 2, 50])
def test_results_come_in_order_and_the_listener_hears_of_each(jobs: int) -> None:
    heard: list[int] = []
    assert spread(square, range(20), jobs, heard.append) == [number**2 for number in range(20)]
    assert heard == list(range(1, 21))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_the_work_reaches_the_caller(jobs: int) -> None:
    with pytest.raises(ValueError, match="no 3"):
        spread(fail, [3, 4], jobs)


def test_an_interrupt_ends_the_processes_before_their_work_is_done(tmp_path: Path) -> None:
    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    files = [tmp_path / str(number) for number in range(4)]
    before = set(active_children())
    with pytest.raises(KeyboardInterrupt):
        spread(finish_late, [None, *files], 2, interrupt)
    assert set(active_children()) <= before
    assert not any(file.exists() for file in files)
