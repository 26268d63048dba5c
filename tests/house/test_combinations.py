"""The page that says which settings go together is what creating such experiments shows.

    python tests/house/test_combinations.py

writes the tables of docs/combinations.md again."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from shortlist import Arm, Experiment
from shortlist.errors import ShortlistError

PAGE = Path(__file__).parents[2] / "docs" / "combinations.md"
GROUPS = ("x", "y")
FEATURES = np.random.default_rng(0).normal(size=(12, 2)).tolist()
BEGIN, END = "## Two at a time\n", "## What else"
PLAIN = {"epsilon": 0.1, "rewards": "binary", "k": 2}
# a name on the page, and what it asks for; `arm` belongs to the arms
SETTINGS: dict[str, dict[str, Any]] = {
    "quotas": {"quotas": {"x": (1, 1)}, "arm": {"group": True}},
    "features": {"features": FEATURES, "certificate": "split"},
    "linear": {"features": FEATURES, "linear": True},
    "normal rewards": {"rewards": "normal"},
    "shared seeds": {"seeds": "shared"},
    "live test": {"per_day": 1000},
    "test set": {"items": 40},
    "repeats": {"items": 40, "repeats": 2},
    "clusters": {"items": 40, "clusters": [item // 4 for item in range(40)]},
    "items like these": {"items": 40, "population": "like these"},
    "costs": {"arm": {"cost": True}},
    "limits": {"arm": {"limit": True}},
    "budget": {"budget": 500},
    "minimize": {"minimize": True},
    "control": {"control": "a0"},
    "guardrails": {"control": "a0", "guardrails": {"bounce": 0.1}},
    "min_batch": {"min_batch": 50},
    "max_rounds": {"max_rounds": 5},
}
Outcome = str  # empty if the experiment is created, else why it is refused


def arms(asked: dict[str, Any]) -> list[Arm]:
    own: list[Arm] = []
    for number in range(12):
        terms: dict[str, Any] = {}
        if "group" in asked:
            terms["group"] = GROUPS[number % 2]
        if "cost" in asked:
            terms["cost"] = 1.0 + number % 2
        if "limit" in asked:
            terms["limit"] = 400
        own.append(Arm(f"a{number}", **terms))
    return own


def created(*names: str) -> Outcome:
    """Create an experiment with these settings; the reason if it is refused."""
    given: dict[str, Any] = dict(PLAIN)
    own: dict[str, Any] = {}
    for name in names:
        own |= SETTINGS[name].get("arm", {})
        given |= {each: value for each, value in SETTINGS[name].items() if each != "arm"}
    try:
        experiment = Experiment.create(arms(own), **given)
        if "live test" in names:
            experiment.shares("first")
        else:
            experiment.ask()
    except ShortlistError as error:
        return str(error)
    return ""


def outcomes() -> dict[tuple[str, str], Outcome]:
    # linear has features, guardrails have a control
    pairs = set(combinations(SETTINGS, 2)) - {("features", "linear"), ("control", "guardrails")}
    return {pair: created(*pair) for pair in combinations(SETTINGS, 2) if pair in pairs}


def written(found: dict[tuple[str, str], Outcome]) -> str:
    """Both tables: which settings go together, and why others are refused."""
    names = list(SETTINGS)
    lines = ["| | " + " | ".join(names[1:]) + " |", "|---" * len(names) + "|"]
    for row, name in enumerate(names[:-1]):
        cells = [
            "" if column <= row else mark(found.get((name, names[column])))
            for column in range(1, len(names))
        ]
        lines.append(f"| **{name}** | " + " | ".join(cells) + " |")
    lines += ["", "| settings | the reason |", "|---|---|"]
    lines += [f"| {one} and {other} | {said(why)} |" for (one, other), why in found.items() if why]
    return "\n".join(lines) + "\n"


def mark(why: Outcome | None) -> str:
    return "" if why is None else "no" if why else "yes"


def said(why: Outcome) -> str:
    return re.sub(r"\s+", " ", why).replace("|", "\\|")


def text_with(tables: str) -> str:
    """The page, with these tables."""
    page = PAGE.read_text(encoding="utf-8")
    return page[: page.index(BEGIN) + len(BEGIN)] + "\n" + tables + "\n" + page[page.index(END) :]


def test_every_setting_is_accepted_alone() -> None:
    assert {name: created(name) for name in SETTINGS} == dict.fromkeys(SETTINGS, "")


def test_the_page_says_which_settings_go_together() -> None:
    assert PAGE.read_text(encoding="utf-8") == text_with(written(outcomes()))


if __name__ == "__main__":
    PAGE.write_text(text_with(written(outcomes())), encoding="utf-8")
