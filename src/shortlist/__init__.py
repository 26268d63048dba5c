"""shortlist: find the K best of n noisy alternatives with few evaluations and a guarantee.

These are the public names. Each is loaded when it is first used, so that `shortlist --help` need
not wait for numpy."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"
__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Answer",
    "Arm",
    "Assessment",
    "Binary",
    "Bounded",
    "Client",
    "Command",
    "ComparedAlgorithms",
    "ComparedRuns",
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
    "register",
    "regret",
    "select",
    "select_async",
    "simulate",
]
_MODULES = ("errors", "instances", "regret")
_DEFINED_IN = {
    "algorithms": ("ALGORITHMS", "Algorithm", "find", "register"),
    "arms": ("Arm",),
    "assessment": ("Assessment", "assess"),
    "certificates.certify": ("certify",),
    "client": ("Client",),
    "constraints": ("Laminar", "Matching", "Matroid", "Quotas"),
    "engine.program": ("Command",),
    "engine": ("Experiment", "Status", "Ticket"),
    "engine.tickets": ("Score",),
    "forecasting": ("Forecast", "Prospect", "forecast"),
    "problem": ("FixedBudget", "FixedConfidence", "Problem"),
    "result": ("Result",),
    "reward_models": ("Binary", "Bounded", "Normal", "SubGaussian"),
    "search": ("Answer", "Pulls", "Rewards", "Search"),
    "selection": ("select", "select_async"),
    "simulation.comparison": ("ComparedAlgorithms", "ComparedRuns", "compare"),
    "simulation.simulate": ("Runs", "simulate"),
    "theory": ("Hardness", "hardness"),
}
_HOMES = {name: module for module, names in _DEFINED_IN.items() for name in names}

if TYPE_CHECKING:
    from shortlist import errors, instances, regret
    from shortlist.algorithms import ALGORITHMS, Algorithm, find, register
    from shortlist.arms import Arm
    from shortlist.assessment import Assessment, assess
    from shortlist.certificates.certify import certify
    from shortlist.client import Client
    from shortlist.constraints import Laminar, Matching, Matroid, Quotas
    from shortlist.engine import Experiment, Status, Ticket
    from shortlist.engine.program import Command
    from shortlist.engine.tickets import Score
    from shortlist.forecasting import Forecast, Prospect, forecast
    from shortlist.problem import FixedBudget, FixedConfidence, Problem
    from shortlist.result import Result
    from shortlist.reward_models import Binary, Bounded, Normal, SubGaussian
    from shortlist.search import Answer, Pulls, Rewards, Search
    from shortlist.selection import select, select_async
    from shortlist.simulation.comparison import ComparedAlgorithms, ComparedRuns, compare
    from shortlist.simulation.simulate import Runs, simulate
    from shortlist.theory import Hardness, hardness
else:

    def __getattr__(name):
        """Load a public name.

        Type checkers read the imports above instead, and so still refuse a misspelt one."""
        if name in _MODULES:
            return import_module(f"shortlist.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'shortlist' has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(f"shortlist.{_HOMES[name]}"), name))


def __dir__() -> list[str]:
    return __all__
