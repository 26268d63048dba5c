"""What the shell proposes: names that are there, and never an error."""

from pathlib import Path

import pytest
from click.shell_completion import BashComplete, ShellComplete

import shortlist
from shortlist.cli import main

ARMS = ["a", "b", "c"]


def proposed(*words: str, begun: str = "") -> list[str]:
    """What is proposed after these words for one that begins so."""
    shell = ShellComplete(main, {}, "shortlist", "_SHORTLIST_COMPLETE")
    return [item.value for item in shell.get_completions(list(words), begun)]


@pytest.mark.parametrize(
    "command", [["simulate"], ["forecast"], ["create", "arms.csv"], ["run", "arms.csv"]]
)
def test_algorithms_are_completed_everywhere(command: list[str]) -> None:
    default = ["auto"] if command[0] in ("create", "run") else []
    assert proposed(*command, "--algorithm") == [*default, *shortlist.ALGORITHMS]
    assert proposed(*command, "--algorithm", begun="adaptive") == [
        "adaptive-top-k",
        "adaptive-top-k-tight",
    ]


@pytest.mark.parametrize("command", ["simulate", "hardness"])
def test_instances_are_completed(command: str) -> None:
    assert proposed(command, "--instance", begun="u") == ["uniform"]
    assert "lower-bound" in proposed(command, "--instance")


def test_commands_are_completed_but_not_their_former_names() -> None:
    assert proposed(begun="fore") == ["forecast"]
    assert proposed(begun="pla") == []


@pytest.mark.parametrize(
    "command",
    ["ask", "tell", "release", "retire", "resume", "status", "result", "export", "run", "create"],
)
def test_experiments_of_a_store_are_completed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "tests.db")
    for name in ("first", "second", "sequel"):
        shortlist.Experiment.create(ARMS, 1, budget=9, store=store, name=name).close()
    assert proposed(command, "--store", store, "--name") == ["first", "second", "sequel"]
    assert proposed(command, "--store", store, "--name", begun="se") == ["second", "sequel"]
    assert proposed(command, "--name") == []
    monkeypatch.setenv("SHORTLIST_STORE", store)
    assert proposed(command, "--name", begun="f") == ["first"]


@pytest.mark.parametrize("content", [None, b"", b"no store at all " * 100])
def test_a_store_that_cannot_be_read_has_no_experiments(
    content: bytes | None, tmp_path: Path
) -> None:
    file = tmp_path / "tests.db"
    if content is not None:
        file.write_bytes(content)
    assert proposed("status", "--store", str(file), "--name") == []
    assert file.exists() == (content is not None)


def test_bash_asks_through_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "shortlist simulate --algorithm uni")
    monkeypatch.setenv("COMP_CWORD", "3")
    shell = BashComplete(main, {}, "shortlist", "_SHORTLIST_COMPLETE")
    assert shell.complete() == "plain,uniform"
