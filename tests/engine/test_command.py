"""A program as a function that evaluates an arm: real ones, and every way in which they fail."""

import json
import shlex
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import ended, until

from shortlist.engine.program import Command, decimal
from shortlist.errors import EvaluationFailed, InvalidInput

PYTHON = shlex.quote(sys.executable)


NUMBERS: dict[str, int] = {"seed": 2**62, "draw": 3, "ticket": 17}


def run(command: Command, arm: str | int = "a") -> float | tuple[float, float]:
    return command(arm, **NUMBERS)


def python(code: str, arguments: str = "{arm}", timeout: float | None = 20.0) -> Command:
    """A program in Python that gets these arguments."""
    return Command(f"{PYTHON} -S -E -c {shlex.quote(code)} {arguments}", timeout)


def test_the_number_that_is_printed_is_the_reward() -> None:
    assert run(python("print('  0.25 \\n')")) == 0.25
    assert run(python("import sys; print('working', file=sys.stderr); print(-1e-3)")) == -0.001


def test_everything_that_is_known_of_a_pull_can_be_filled_in() -> None:
    command = Command(
        f"{PYTHON} x={{arm}} {{seed}}-{{draw}} {{ticket}} {{{{other}}}} '{{\"a\": {{1}}}}'"
    )
    assert command.arguments("b c", **NUMBERS)[1:] == [
        "x=b c",
        f"{2**62}-3",
        "17",
        "{other}",
        '{"a": {1}}',
    ]


SHOW = "import json, sys; json.dump(sys.argv[1:], open('seen.json', 'w')); print(1)"
NASTY = [
    "two words",
    "-rf",
    "--help",
    "'",
    '"',
    "$(touch pwned)",
    "`touch pwned`",
    "a; touch pwned",
    "x\ny",
    "é✓",
    "{seed}",
    "*",
    "\\",
    "a&b|c>d",
    "",
]


@pytest.mark.parametrize(("printed", "reward"), [("True", 1), ("false", 0), ("1e0", 1)])
def test_a_program_may_print_a_number_or_whether_it_was_right(printed: str, reward: float) -> None:
    assert run(python(f"print({printed!r})")) == reward


@pytest.mark.parametrize("label", NASTY)
def test_a_label_is_one_argument_whatever_it_holds(
    label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(python(SHOW, "{arm} 'quoted {arm}'"), label) == 1
    assert json.loads(Path("seen.json").read_text()) == [label, f"quoted {label}"]
    assert [path.name for path in tmp_path.iterdir()] == ["seen.json"]


FILLED = Command(f"{PYTHON} --arm={{arm}} {{arm}}{{seed}} end")


@given(st.text())
def test_filling_in_never_changes_the_number_of_arguments(label: str) -> None:
    assert FILLED.arguments(label, **NUMBERS)[1:] == [f"--arm={label}", f"{label}{2**62}", "end"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no such page')", r"its exit status was 1; it said: no such page"),
        ("import sys; sys.exit(3)", r"its exit status was 3$"),
        ("print('about 5')", r"it printed 'about 5', but must print one number$"),
        ("print(1); print(2)", r"it printed '1\\n2', but must print one number"),
        ("pass", r"it printed '', but must print one number"),
        (
            "import sys; print('hm', file=sys.stderr); print('x')",
            r"must print one number; it said: hm",
        ),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"it was ended by SIGSEGV"),
        (
            "import sys; sys.stdout.buffer.write(b'\\xff\\xfe')",
            r"it printed '��', but must print one number",
        ),
        (
            "import sys; sys.exit('x' * 5000 + 'the end')",
            r"it said: x{193}the end\nx{3993}the end$",
        ),
        ("print('1_0')", r"it printed '1_0', but must print one number"),
        ("print(chr(0x661))", r"it printed '.', but must print one number"),
        ("print('nan')", r"it printed 'nan', but must print one number"),
        (
            "import sys; sys.exit('Traceback:\\n  line\\nthe end')",
            r"its exit status was 1; it said: the end\nTraceback",
        ),
    ],
)
def test_whatever_goes_wrong_is_a_failure_in_words(code: str, message: str) -> None:
    with pytest.raises(EvaluationFailed, match=message):
        run(python(code))


@pytest.mark.parametrize("text", ["1", "-1.5", "+.5", "3.", "1e-3", "2.5E+2"])
def test_ordinary_decimal_notation_is_a_number(text: str) -> None:
    assert decimal(f" {text}\n") == float(text)


def test_all_that_a_failed_program_said_is_in_a_note() -> None:
    with pytest.raises(EvaluationFailed) as caught:
        run(python("import sys; sys.exit('one\\ntwo\\nthree')"))
    assert caught.value.__notes__ == ["one\ntwo\nthree"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_program_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    child, timeout = tmp_path / "child", 0.3
    code = (
        "import subprocess, time; p = subprocess.Popen(['sleep', '600']);"
        f" open({str(child)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    )
    while not (child.exists() and child.read_text()):  # it is ended before it starts another
        with pytest.raises(EvaluationFailed, match=f"it took longer than {timeout:g} s"):
            run(python(code, timeout=timeout))
        timeout *= 2
    assert ended(int(child.read_text()))


def test_a_program_that_cannot_be_started_is_a_failure() -> None:
    with pytest.raises(EvaluationFailed, match=r"it cannot be started: .*nowhere"):
        run(Command("{arm}/program"), "/nowhere")
    with pytest.raises(EvaluationFailed, match="it cannot be started: embedded null byte"):
        run(Command(f"{PYTHON} {{arm}}"), "a\0b")


def test_stopping_ends_what_is_running_and_starts_nothing_any_more() -> None:
    command = python("import time; time.sleep(60)", timeout=None)
    outcome: list[BaseException] = []

    def wait() -> None:
        try:
            run(command)
        except EvaluationFailed as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: command._running)
    command.stop()
    thread.join(60)
    assert str(outcome[0]) == "it was ended by SIGKILL"
    with pytest.raises(EvaluationFailed, match="stopped before it began"):
        run(command)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("./evaluate", "must contain {arm}, which stands for the arm to pull"),
        ("", "must contain {arm}"),
        ("no-such-program-anywhere {arm}", "there is no program 'no-such-program-anywhere'"),
        ("./noexec {arm}", "but './noexec' is not executable"),
        (
            "echo {arm} {sed}",
            (
                r"{sed} stands for nothing: there is only {arm}, {item}, {seed}, {draw}, {ticket};"
                r" .* write {{sed}}"
            ),
        ),
        ("echo {{arm}}", "must contain {arm}"),
        ("echo 'unfinished {arm}", "cannot be split into arguments: No closing quotation"),
    ],
)
def test_a_command_that_cannot_work_is_refused_at_once(
    template: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("noexec").touch()
    with pytest.raises(InvalidInput, match=message):
        Command(template)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_must_be_positive(timeout: float) -> None:
    with pytest.raises(InvalidInput, match="`timeout` is"):
        Command(f"{PYTHON} {{arm}}", timeout)
