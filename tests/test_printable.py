"""What others wrote reaches no terminal and no page as a command, wherever it is shown."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke

import shortlist
from shortlist.errors import InvalidInput
from shortlist.formatting import TextTable, printable
from shortlist.result import Result

ESCAPES = {
    "a colour": "\x1b[31mred",
    "a title of the window": "\x1b]0;gone\x07",
    "C1": "\x9b2Jgone",
    "an override of direction": "\u202egnp.exe",
    "an isolate": "\u2066x\u2069",
    "a return": "good\rbad",
    "a line": "one\u2028two\x85three",
    "backspace": "bad\x08\x08\x08ok",
    "delete": "x\x7f",
}
OBEYED = "".join(set("".join(ESCAPES.values())) - set("".join(map(chr, range(32, 127)))))


def obeyed(text: str) -> set[str]:
    """Characters in a text that a terminal or a reader's eye would obey."""
    return set(text) & set(OBEYED)


def test_characters_that_a_terminal_would_obey_are_spelt() -> None:
    assert printable("épicé\t\x1b[2J\n\u202e", keep="\n") == "épicé\\t\\x1b[2J\n\\u202e"
    assert printable("\ud800\x9b") == "\\ud800\\x9b"


@pytest.mark.parametrize("text", ESCAPES.values(), ids=ESCAPES)
def test_a_table_is_printable_in_text_and_in_html(text: str) -> None:
    table = TextTable((text, "n"), [(text, text)], [(text, text)], title=text, verdict=text)
    assert not obeyed(str(table))
    assert not obeyed(table._repr_html_())


@pytest.mark.parametrize("text", ESCAPES.values(), ids=ESCAPES)
def test_an_error_is_printable_whatever_it_quotes(text: str) -> None:
    assert not obeyed(str(InvalidInput(f"{text} is wrong")))
    for error in (shortlist.errors.StoreMissing(2, "no file", text),):
        assert not obeyed(str(error))


@pytest.mark.parametrize("text", ESCAPES.values(), ids=ESCAPES)
def test_a_result_is_printable(text: str) -> None:
    result = shortlist.select(lambda arm: 1.0, arms=[text, "b"], k=1, budget=4, progress=False)
    assert isinstance(result, Result)
    assert not obeyed(str(result))
    assert not obeyed(result._repr_html_())


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Experiments, labels and workers whose names are escapes."""
    file = str(tmp_path / "hostile.db")
    for name in ESCAPES.values():
        labels = [f"{text}{i}" for i, text in enumerate(ESCAPES.values())]
        with shortlist.Experiment.create(labels, 2, store=file, name=name, budget=30) as made:
            (ticket,) = made.ask(1, "\x1b[31mworker")
            made.fail(ticket, "\x1b]0;gone\x07")
    return file


@pytest.mark.parametrize("style", ["table", "json"])
@pytest.mark.parametrize("command", ["status", "ask", "result"])
def test_commands_print_what_others_wrote_printable(command: str, style: str, store: str) -> None:
    for name in ESCAPES.values():
        ended = invoke([command, "--store", store, "--name", name, "--format", style])
        assert not obeyed(ended.stdout + ended.stderr), ended.stdout
    ended = invoke([command, "--store", store])  # which names all there are
    assert ended.exit_code == 2
    assert not obeyed(ended.stderr)


def test_the_list_and_arguments_that_are_refused_are_printable(store: str) -> None:
    assert not obeyed(invoke(["list", store]).stdout)
    for text in ESCAPES.values():
        for arguments in (
            [text],
            ["status", "--store", text],
            ["status", "--store", store, "--name", text + "?"],
            ["simulate", "--instance", text],
            ["simulate", "--instance", "rte", "-k", "1", "--budget", "200", "--algorithm", text],
            ["run", text, "--pull", text, "-k", "1"],
        ):
            ended = invoke(arguments)
            assert ended.exit_code in (1, 2)
            assert ended.stderr.count("\n") == 1
            assert not obeyed(ended.stderr)


def on_a_terminal(arguments: list[str]) -> str:
    """What a terminal is sent by the command line."""
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "shortlist", *arguments], stdout=theirs, stderr=theirs, check=False
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as screen:
        return screen.read1(2**16).decode()


@pytest.mark.parametrize(
    "arguments", [["status", "--format", "csv"], ["export"]], ids=["status", "export"]
)
def test_data_is_printable_on_a_terminal_and_as_it_is_elsewhere(
    arguments: list[str], store: str
) -> None:
    name = ESCAPES["C1"]
    place = ["--store", store, "--name", name]
    assert not obeyed(on_a_terminal([*arguments, *place]).replace("\r\n", "\n"))
    assert obeyed(invoke([*arguments, *place]).stdout)


def test_what_a_worker_says_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    from shortlist.cli.output import note

    note("\x1b[31mred\nand\tmore")
    assert capsys.readouterr().err == "\\x1b[31mred\nand\tmore\n"


@pytest.mark.parametrize("arms", [["a", "\ud800"], [("a", "\ud800"), "b"]])
def test_a_label_that_cannot_be_written_is_refused(arms: Any) -> None:
    with pytest.raises(InvalidInput, match="UTF-8 must have all its characters"):
        shortlist.Experiment.create(arms, 1, budget=4)


def test_an_experiment_is_not_called_what_cannot_be_written() -> None:
    with pytest.raises(InvalidInput, match="`name` is"):
        shortlist.Experiment.create(2, 1, budget=4, name="\udc80")
