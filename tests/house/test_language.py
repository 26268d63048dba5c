"""Plain technical English: a list of words and phrases that no page, help text or module has.

docs/glossary.md has the words to use instead."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import invoke

from shortlist.cli import main

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "shortlist"
AVOIDED = {  # pattern: what to write instead; a space also matches the end of a line
    r"who(m|se)?ever": "you, the caller, the worker",
    r"(no|some|any|every)body": "no one, a user, a program; name the person or the program",
    r"dear(er|est|ly)?": "expensive, highest-cost",
    r"so many": "this many, the given number of",
    r"anew": "again",
    r"by lot": "at random",
    r"in words": "in the error message",
    r"(is|was|are|were|be) said": "is specified, is reported",
    r"can(not)? be told": "supports, can be distinguished",
    r"did (not )?cost": "actual cost",
    r"laws?": "distribution",
    r"scatter(s|ed|ing)?": "variance, standard deviation",
    r"purses?": "budget",
    r"(go|goes|went|going) on": "continue",
    r"beside": "next to, compared with",
    r"by (itself|themselves)": "on its own",
    r"untold": "not reported",
    r"race of pairss?": "pairs certificate",
    r"safety nets?": "fallback design",
    r"arms? that (leaves?|left|stays?)": "retired arm, remaining arm",
    r"(row|column|line|chain|account|seed) an? (arm|item|log|cell|run)": "per",
    r"(rewards|requests|calls|visitors|times|ms) an? (second|minute|day|run|pull)": "per",
    r"(\d|[NB]) pulls an? (arm|item|day)": "per",
}
# A modifier that keeps its name in another package, as matplotlib's function for points does.
NAMES = re.compile(r"\.scatter\(|dear ?imgui")
# How often modules and help texts still have them. Lower these numbers; never raise one.
IN_SOURCE = 0
IN_HELP = 0
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.py")),
    *sorted(path for path in (ROOT / "examples").iterdir() if path.is_file()),
]
MODULES = sorted(
    path for path in SOURCE.rglob("*") if path.suffix in {".py", ".html", ".md", ".js"}
)


def found(text: str) -> Iterator[str]:
    """Every avoided phrase of a text, with its line; names are read as words."""
    plain = NAMES.sub("", text).replace("_", " ")
    plain = re.sub(r"\n[ \t]*(#:? )?", lambda gap: "\n" + " " * (len(gap[0]) - 1), plain)
    for pattern, instead in AVOIDED.items():
        phrase = pattern.replace(" ", r"\s+")
        for match in re.finditer(rf"\b({phrase})\b", plain, re.IGNORECASE):
            line = plain.count("\n", 0, match.start()) + 1
            yield f"line {line}: {' '.join(match[0].split())!r}, write {instead}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_in_plain_english(page: Path) -> None:
    assert [*found(page.read_text(encoding="utf-8"))] == []


def test_help_texts_are_in_plain_english() -> None:
    hits = [
        f"shortlist {name} --help, {hit}"
        for name in ("", *main.commands)
        for hit in found(invoke([*name.split(), "--help"]).stdout)
    ]
    assert len(hits) <= IN_HELP, "\n".join(hits)


def test_modules_are_in_plain_english() -> None:
    hits = [
        f"{path.relative_to(ROOT)} {hit}"
        for path in MODULES
        for hit in found(path.read_text(encoding="utf-8"))
    ]
    assert len(hits) <= IN_SOURCE, "\n".join(hits)


def test_an_avoided_phrase_is_found_across_lines_and_in_names() -> None:
    assert len([*found("pulls the arm so\n    # many times")]) == 1
    assert len([*found("def in_words(purse): ...")]) == 2
    assert len([*found("the dearest arm, and nobody asks")]) == 2
    assert [*found("a lawful award besides the endearing one")] == []
    assert [*found("axes.scatter(x, y)")] == []
