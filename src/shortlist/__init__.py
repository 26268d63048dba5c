"""shortlist: find the K best of n noisy alternatives with few evaluations and a guarantee.

These are the public names. Each is loaded when it is first used, so that `shortlist --help` need
not wait for numpy."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "ALGORITHMS",
    "Binary",
    "Bounded",
    "Experiment",
    "FixedBudget",
    "FixedConfidence",
    "Forecast",
    "Hardness",
    "Problem",
    "Result",
    "Runs",
    "SubGaussian",
    "__version__",
    "certify",
    "errors",
    "find",
    "forecast",
    "hardness",
    "instances",
    "metrics",
    "select",
    "select_async",
    "simulate",
]
_MODULES = ("errors", "instances", "metrics")
_DEFINED_IN = {
    "algorithms": ("ALGORITHMS", "find"),
    "certify": ("certify",),
    "experiment": ("Experiment",),
    "forecast": ("Forecast", "forecast"),
    "hardness": ("Hardness", "hardness"),
    "problem": ("Binary", "Bounded", "FixedBudget", "FixedConfidence", "Problem", "SubGaussian"),
    "result": ("Result",),
    "select": ("select", "select_async"),
    "simulation.replicate": ("Runs", "simulate"),
}
_HOMES = {name: module for module, names in _DEFINED_IN.items() for name in names}

if TYPE_CHECKING:
    from shortlist import errors, instances, metrics
    from shortlist.algorithms import ALGORITHMS, find
    from shortlist.certify import certify
    from shortlist.experiment import Experiment
    from shortlist.forecast import Forecast, forecast
    from shortlist.hardness import Hardness, hardness
    from shortlist.problem import (
        Binary,
        Bounded,
        FixedBudget,
        FixedConfidence,
        Problem,
        SubGaussian,
    )
    from shortlist.result import Result
    from shortlist.select import select, select_async
    from shortlist.simulation.replicate import Runs, simulate
else:

    def __getattr__(name):
        """Load a public name; type checkers read the imports above instead, and so still refuse a
        misspelt one."""
        if name in _MODULES:
            return import_module(f"shortlist.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'shortlist' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(f"shortlist.{_HOMES[name]}"), name))


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Lets a public function share its name with the module it lives in.

    Importing a submodule binds it as an attribute of its package, which would put the module
    `shortlist.hardness` in the place of the function. That one assignment is ignored; `from
    shortlist.hardness import ...` works as ever."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
