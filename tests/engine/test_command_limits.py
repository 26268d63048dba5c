"""Programs that print without end, or leave children behind: bounded memory, and nothing stays."""

import os
import shlex
import signal
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from waiting import ended

from shortlist.engine.program import KEPT, Command, Output, Program
from shortlist.errors import EvaluationFailed

PYTHON = shlex.quote(sys.executable)
MEGABYTE = 2**20


def run(code: str, timeout: float | None = 20.0, arm: str = "a") -> float | tuple[float, float]:
    command = Command(f"{PYTHON} -S -E -c {shlex.quote(code)} {{arm}}", timeout)
    return command(arm, seed=1, draw=0, ticket=0)


def traced_peak(code: str, message: str, timeout: float = 20.0) -> int:
    """The most memory that is held while a program fails so."""
    tracemalloc.start()
    try:
        with pytest.raises(EvaluationFailed, match=message):
            run(code, timeout)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_of_a_large_output_a_bounded_part_is_kept_and_the_rest_counted() -> None:
    code = "import sys; [sys.stdout.write('x' * 2**20) for _ in range(100)]"
    dropped = f"{100 * MEGABYTE - KEPT:,}"
    message = f"it printed 'x{{200}}' and {dropped} bytes more, but must print one number"
    assert traced_peak(code, message) < 2 * MEGABYTE


def test_of_many_complaints_the_last_are_kept() -> None:
    code = "import sys; [sys.stderr.write('x' * 2**20) for _ in range(100)]; sys.exit('\\nthe end')"
    assert traced_peak(code, "its exit status was 1; it said: the end") < 2 * MEGABYTE


def test_an_endless_output_is_ended_by_the_timeout_in_bounded_memory() -> None:
    code = "while True: print('y' * 1000)"
    assert traced_peak(code, r"it took longer than 0\.5 s", timeout=0.5) < 2 * MEGABYTE


def test_a_number_with_more_behind_it_than_is_kept_is_none() -> None:
    with pytest.raises(EvaluationFailed, match="it printed '1' and 1 bytes more"):
        run(f"print('1' + ' ' * {KEPT - 1})")


@pytest.mark.parametrize("last", [False, True])
def test_an_output_is_kept_to_the_byte(last: bool) -> None:
    output = Output(last)
    output.add(b"a" * KEPT)
    assert (output.dropped, len(output.all_of_it)) == (0, KEPT)
    output.add(b"b" * 10)
    assert output.dropped == 10
    assert output.text == ("a" * (KEPT - 10) + "b" * 10 if last else "a" * KEPT)
    with pytest.raises(ValueError, match="10 bytes were dropped"):
        _ = output.all_of_it


def leaving_a_child(record: Path, **how: object) -> str:
    """A program that prints 1 and leaves a child, which has its pipes, and its number in a file."""
    child = "import time; time.sleep(90)"
    return (
        f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {child!r}],"
        f" **{how!r}); open({str(record)!r}, 'w').write(str(p.pid)); print(1)"
    )


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("timeout", [None, 20.0])
def test_a_child_that_keeps_the_pipes_open_is_ended_with_the_program(
    timeout: float | None, tmp_path: Path
) -> None:
    started = time.monotonic()
    assert run(leaving_a_child(tmp_path / "child"), timeout) == 1
    assert time.monotonic() - started < 60
    assert ended(int((tmp_path / "child").read_text()))


def test_who_left_the_group_is_not_waited_for(tmp_path: Path) -> None:
    started = time.monotonic()
    code = leaving_a_child(tmp_path / "child", start_new_session=True)
    assert run(code, None) == 1
    assert time.monotonic() - started < 60
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def test_a_program_that_closes_its_pipes_is_waited_for() -> None:
    code = "import os, time; print(1, flush=True); os.close(1); os.close(2); time.sleep(0.2)"
    started = time.monotonic()
    assert run(code) == 1
    assert time.monotonic() - started >= 0.2


def test_where_children_are_reaped_by_themselves_a_program_still_ends() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        program = Program([sys.executable, "-S", "-c", "print(1)"], dict(os.environ))
        assert program.wait(120) == 0
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert program.output.text == "1"


def shell(script: str, arm: str) -> float | tuple[float, float]:
    return Command(f"sh -c {shlex.quote(script)}")(arm, seed=5, draw=1, ticket=2)


def test_what_is_known_of_a_pull_is_in_the_environment_and_never_run(tmp_path: Path) -> None:
    label = f"$(touch {tmp_path}/pwned) `touch {tmp_path}/pwned`; touch {tmp_path}/pwned; '\""
    script = 'test "$SHORTLIST_ARM" = "$(cat)" && echo "$SHORTLIST_SEED$SHORTLIST_DRAW"'
    script = f"printf %s {shlex.quote(label)} | (cat > {tmp_path}/label); " + script.replace(
        "$(cat)", f"$(cat {tmp_path}/label)"
    )
    assert shell(script, label) == 51
    assert not (tmp_path / "pwned").exists()


def test_a_label_inside_a_script_can_run_commands_as_the_docs_say(tmp_path: Path) -> None:
    assert shell("echo 1 {arm}", f"; touch {tmp_path}/run") == 1
    assert (tmp_path / "run").exists()
