"""The public names: pinned, loaded when used, and never hidden by a module of the same name."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import shortlist

PUBLIC = {
    "ALGORITHMS",
    "Algorithm",
    "Answer",
    "Arm",
    "Assessment",
    "Binary",
    "Bounded",
    "Client",
    "Command",
    "ComparedRuns",
    "ComparedAlgorithms",
    "Experiment",
    "FixedBudget",
    "FixedConfidence",
    "Forecast",
    "Hardness",
    "Laminar",
    "Matching",
    "Matroid",
    "Normal",
    "Problem",
    "Prospect",
    "Pulls",
    "Quotas",
    "Result",
    "Rewards",
    "Runs",
    "Score",
    "Search",
    "Status",
    "SubGaussian",
    "Ticket",
    "__version__",
    "assess",
    "certify",
    "compare",
    "errors",
    "find",
    "forecast",
    "hardness",
    "instances",
    "regret",
    "register",
    "select",
    "select_async",
    "simulate",
}


def python(code: str) -> str:
    """What this code prints in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_public_names_are_these() -> None:
    assert set(shortlist.__all__) == set(dir(shortlist)) == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_loads(name: str) -> None:
    assert getattr(shortlist, name) is not None


def test_what_type_checkers_see_is_what_is_public() -> None:
    tree = ast.parse(Path(inspect.getfile(shortlist)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen | {"__version__"} == PUBLIC


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'shortlist' has no attribute 'selectt'"):
        getattr(shortlist, "selectt")  # noqa: B009


def test_no_module_hides_a_public_function_of_its_name() -> None:
    modules = {path.stem for path in Path(inspect.getfile(shortlist)).parent.iterdir()}
    assert modules & PUBLIC == {"errors", "instances", "regret"}


def test_public_modules_and_other_submodules_are_bound_as_usual() -> None:
    assert python("import shortlist.search; print(shortlist.search.Pulls.__name__)") == "Pulls"
    assert python("import shortlist; print(shortlist.instances.uniform(2).size)") == "2"


def test_neither_the_package_nor_the_command_line_imports_anything_heavy() -> None:
    heavy = "{'numpy', 'scipy', 'rich'} & set(sys.modules)"
    assert python(f"import sys, shortlist, shortlist.cli; print({heavy} or 'nothing')") == "nothing"


def test_an_experiment_imports_no_more_of_scipy_than_its_special_functions() -> None:
    heavy = "{'scipy.stats', 'scipy.optimize', 'scipy.linalg'} & set(sys.modules)"
    experiment = "from shortlist import Experiment"
    assert python(f"import sys; {experiment}; print({heavy} or 'nothing')") == "nothing"
