"""The lowest versions that `make lowest` tests are the lowest that are declared."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tested_floors_are_the_declared_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = dict(each.split(">=") for each in project["dependencies"])
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").split()
    tested = dict(line.split("==") for line in lines)
    assert tested.keys() == declared.keys()
    for name, version in tested.items():
        # The first release of a series may be missing: of scipy 1.11 it is 1.11.1.
        assert re.match(rf"{re.escape(declared[name])}(\.[01])*$", version), name
