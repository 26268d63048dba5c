"""What is published: metadata, groups of dependencies, and the workflows that build it."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import shortlist

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = {file.stem: file for file in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}


def workflow(name: str) -> dict[str, Any]:
    parsed: dict[str, Any] = pytest.importorskip("yaml").safe_load(WORKFLOWS[name].read_text())
    return parsed


def commands(jobs: dict[str, Any]) -> list[str]:
    """The shell lines of all steps, once for every target of a matrix."""
    lines = []
    for job in jobs.values():
        targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
        steps = [step["run"] for step in job["steps"] if "run" in step]
        lines += [run.replace("${{ matrix.target }}", each) for run in steps for each in targets]
    return lines


def minor_versions() -> list[str]:
    return re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))


def test_every_python_that_is_named_is_tested() -> None:
    assert workflow("ci")["jobs"]["test"]["strategy"]["matrix"]["python"] == minor_versions()
    assert PROJECT["project"]["requires-python"] == f">={minor_versions()[0]}"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_makes_what_the_makefile_has(name: str) -> None:
    made = [line for line in commands(workflow(name)["jobs"]) if line.startswith("make ")]
    words = {word for line in made for word in line.split()[1:] if "=" not in word}
    assert words
    assert {word for word in words if not re.search(rf"^{word}:", MAKEFILE, re.MULTILINE)} == set()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_is_off_until_it_is_switched_on_and_may_only_read(name: str) -> None:
    parsed = workflow(name)
    assert parsed["permissions"] == {"contents": "read"}
    for job in parsed["jobs"].values():
        assert f"vars.{name.upper()} == 'on'" in job.get("if", "") or "needs" in job


def test_a_release_stores_no_password_and_attests_what_it_publishes() -> None:
    text = WORKFLOWS["release"].read_text(encoding="utf-8")
    assert "secrets." not in text
    publish = workflow("release")["jobs"]["publish"]
    assert publish["permissions"]["id-token"] == publish["permissions"]["attestations"] == "write"
    assert publish["needs"] == "build"
    assert [step["with"] for step in publish["steps"]][-1] == {"attestations": True}


def test_a_release_is_refused_while_an_address_is_a_placeholder() -> None:
    """Its first step looks for them, and for this line of the version."""
    checks = "\n".join(commands(workflow("release")["jobs"]))
    assert r"! grep -n '\.example' pyproject.toml" in checks
    source = (ROOT / "src" / "shortlist" / "__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{shortlist.__version__}"' in source.splitlines()
    assert set(PROJECT["project"]["urls"]) >= {"Documentation", "Source", "Issues", "Changelog"}


def test_groups_of_dependencies_name_each_other_and_are_no_extras() -> None:
    groups = PROJECT["dependency-groups"]
    included = {each["include-group"] for each in groups["dev"] if isinstance(each, dict)}
    assert included <= set(groups)
    assert set(groups) & set(PROJECT["project"]["optional-dependencies"]) == set()


def test_every_development_dependency_has_its_version_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    pinned = {normal(line.partition("==")[0]) for line in lines}
    wanted = [
        re.split(r"[\[><=;]", each)[0]
        for group in PROJECT["dependency-groups"].values()
        for each in group
        if isinstance(each, str)
    ]
    assert [each for each in wanted if normal(each) not in pinned] == []


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
