"""The pages tell the truth: their Python runs, their commands work, their links lead somewhere."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import invoke

import shortlist
from shortlist.algorithms import ALGORITHMS

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]
}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.fixture(autouse=True)
def _same_algorithms_afterwards() -> Iterator[None]:
    """A page may register one of its own."""
    before = dict(ALGORITHMS)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(before)


@pytest.mark.parametrize("page", [name for name, page in PAGES.items() if blocks(page, "python")])
def test_the_python_on_a_page_runs_from_top_to_bottom_and_prints_what_it_shows(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "\n".join(blocks(PAGES[page], "python"))
    for optional in ("distributed", "sklearn"):
        if optional in code:
            pytest.importorskip(optional)
    names: dict[str, object] = {}
    exec(compile(code, page, "exec"), names)
    assert names
    printed = capsys.readouterr().out
    assert [text for text in blocks(PAGES[page], "text") if text not in printed] == []


def test_a_block_that_is_a_program_runs_as_one(tmp_path: Path) -> None:
    """Above, its guarded part does not run: worker processes can only import what a file holds."""
    programs = [
        block for page in PAGES.values() for block in blocks(page, "python") if "__main__" in block
    ]
    assert programs
    for program in programs:
        (tmp_path / "program.py").write_text(program, encoding="utf-8")
        subprocess.run([sys.executable, "-W", "error", tmp_path / "program.py"], check=True)


@pytest.mark.parametrize("page", [name for name, page in PAGES.items() if blocks(page, "console")])
def test_the_commands_on_a_page_work(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("means.csv").write_text("mean\n" + "0.3\n0.7\n" * 10)
    Path("pilot.csv").write_text(
        "arm,pulls,successes\n" + "".join(f"{arm},20,{2 * arm}\n" for arm in range(10))
    )
    Path("fresh.csv").write_text("arm,chosen,pulls,successes\na,yes,400,330\nb,no,400,120\n")
    Path("counts.csv").write_text("arm,pulls,successes\nred,400,48\ngreen,400,30\nblue,400,9\n")
    Path("arms.csv").write_text("arm\n" + "".join(f"variant {number}\n" for number in range(8)))
    Path("evaluate").write_text('#!/bin/sh\ncase "$1" in *3|*5) echo 1;; *) echo 0;; esac\n')
    Path("evaluate").chmod(0o755)
    commands = "".join(blocks(PAGES[page], "console")).replace("\\\n", " ").splitlines()
    assert commands
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "shortlist"
        assert invoke(arguments).exit_code == 0, command


@pytest.mark.parametrize("page", PAGES)
def test_links_to_files_lead_somewhere(page: str) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", PAGES[page].read_text(encoding="utf-8"))
    assert [link for link in links if not (PAGES[page].parent / link).exists()] == []


def test_files_named_in_the_architecture_are_there() -> None:
    page = PAGES["docs/architecture.md"].read_text(encoding="utf-8")
    files = set(re.findall(r"(?<![\w/])[\w/]+\.py\b", page))
    homes = (ROOT, ROOT / "src" / "shortlist")
    missing = {file for file in files if not any((home / file).is_file() for home in homes)}
    assert "search.py" in files
    assert missing == set()


MODULE_NAMED = re.compile(r"\b[a-z]\w*\.py\b")
WRITTEN = [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
OWN = ("src", "tests", "benchmarks", "examples", "docs")


def modules_named(text: str) -> set[str]:
    return set(MODULE_NAMED.findall(text))


def test_modules_named_in_comments_and_pages_are_there() -> None:
    there = {path.name for folder in OWN for path in (ROOT / folder).rglob("*.py")}
    sources = [*(ROOT / "src").rglob("*.py"), *WRITTEN]
    named = {path.name: modules_named(path.read_text(encoding="utf-8")) for path in sources}
    assert {name: found - there for name, found in named.items() if found - there} == {}


def test_the_check_of_modules_sees_a_name() -> None:
    assert modules_named("see leaving.py, `engine/gone.py`; not `1.py`") == {
        "leaving.py",
        "gone.py",
    }


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    others = [
        page.name
        for page in PAGES.values()
        if page.parent == ROOT / "docs" and page.name != "index.md"
    ]
    assert [name for name in others if f"({name})" not in index] == []


def test_the_citation_is_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [shortlist.__version__]
