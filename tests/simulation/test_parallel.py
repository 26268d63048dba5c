"""Work in several processes: the same results in order, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path

import pytest

from shortlist.simulation.parallel import parallel_map, parallel_stream


def square(number: int) -> int:
    return number * number


def finish_late(file: Path | None) -> None:
    if file is not None:
        time.sleep(30)
        file.touch()


@pytest.fixture
def _a_library_handles_sigterm() -> Iterator[None]:
    """As Ray does: then a polite request ends a task at most, but not its process."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


def fail(number: int) -> None:
    raise ValueError(f"no {number}")


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_results_come_in_order_and_the_listener_hears_of_each(workers: int) -> None:
    heard: list[int] = []
    assert parallel_map(square, range(20), workers, heard.append) == [
        number**2 for number in range(20)
    ]
    assert heard == list(range(1, 21))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_the_work_reaches_the_caller(workers: int) -> None:
    with pytest.raises(ValueError, match="no 3"):
        parallel_map(fail, [3, 4], workers)


@pytest.mark.parametrize("workers", [1, 2, 50])
def test_a_stream_gives_the_same_results_in_the_same_order(workers: int) -> None:
    assert list(parallel_stream(square, range(20), workers)) == [number**2 for number in range(20)]
    assert list(parallel_stream(square, [], workers)) == []


def test_a_stream_that_is_closed_early_leaves_no_process_behind(tmp_path: Path) -> None:
    before = set(active_children())
    with closing(
        parallel_stream(finish_late, [None, *(tmp_path / str(number) for number in range(4))], 2)
    ) as results:
        next(results)
    assert set(active_children()) <= before
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_processes_end_when_their_parent_is_killed() -> None:
    program = """
import os
import time
from shortlist.simulation.parallel import parallel_map

def work(number):
    os.write(1, b"working\\n")  # in one piece, unlike print
    time.sleep(90)
    os.write(1, b"outlived its parent")

if __name__ == "__main__":
    parallel_map(work, range(2), 2)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["working\n"] * 2
        os.kill(process.pid, signal.SIGKILL)
        assert process.stdout.read() == ""  # ends when the last of them does


@pytest.mark.usefixtures("_a_library_handles_sigterm")
def test_an_interrupt_ends_the_processes_before_their_work_is_done(tmp_path: Path) -> None:
    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    files = [tmp_path / str(number) for number in range(4)]
    before = set(active_children())
    with pytest.raises(KeyboardInterrupt):
        parallel_map(finish_late, [None, *files], 2, interrupt)
    assert set(active_children()) <= before
    assert not any(file.exists() for file in files)
