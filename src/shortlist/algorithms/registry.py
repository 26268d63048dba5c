"""The registry: every algorithm by name, and the one place that says which algorithm is meant."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypeVar, overload

from shortlist.algorithms.adaptive_top_k import adaptive_top_k, adaptive_top_k_tight
from shortlist.algorithms.algorithm import (
    BOTH,
    Algorithm,
    AlgorithmLike,
    SearchFunction,
    check_takes_problem,
    imported,
)
from shortlist.algorithms.certified import certified
from shortlist.algorithms.elimination import median_elimination, opt_mai, sar
from shortlist.algorithms.expected_loss import expected_loss, expected_loss_anytime
from shortlist.algorithms.improved_top_k import improved_top_k
from shortlist.algorithms.lucb import clucb_pac, clucb_pac_anytime, kl_lucb, lucb
from shortlist.algorithms.ranking_and_selection import kn, ocba_m, rinott
from shortlist.algorithms.track_and_stop import track_and_stop
from shortlist.algorithms.uniform import uniform
from shortlist.errors import InvalidInput, UnknownName
from shortlist.problem import FixedBudget, FixedConfidence, Goal
from shortlist.validation import collected, shown, whole

Goals = type[Goal] | Iterable[type[Goal]] | None
Function = TypeVar("Function", bound=SearchFunction)

AUTOMATIC = "auto"  # no algorithm: `question` chooses one by the goal
PAPER = "Chen, Chen, Zhang, Zhou 2017"
REGRET = "R_T <= epsilon with probability 1 - delta"
ELEMENTWISE = (
    "every j-th best chosen mean >= theta_j - epsilon, hence R_T <= epsilon, with probability 1 -"
    " delta"
)

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("adaptive-top-k", adaptive_top_k, BOTH, REGRET, f"{PAPER}, Algorithm 1"),
        Algorithm(
            "adaptive-top-k-tight",
            adaptive_top_k_tight,
            (FixedConfidence,),
            REGRET,
            f"{PAPER}, Algorithm 1 with pooled samples and the constants its proof allows",
        ),
        Algorithm(
            "improved-top-k", improved_top_k, (FixedConfidence,), REGRET, f"{PAPER}, Algorithm 5"
        ),
        Algorithm("opt-mai", opt_mai, (FixedBudget,), "none", "Zhou, Chen, Li 2014, Algorithm 1"),
        Algorithm(
            "clucb-pac",
            clucb_pac,
            BOTH,
            REGRET,
            "Chen, Lin, King, Lyu, Chen 2014, Appendix B.2",
            anytime=clucb_pac_anytime,
            constraints=True,
        ),
        Algorithm(
            "lucb", lucb, BOTH, ELEMENTWISE, "Kalyanakrishnan, Tewari, Auer, Stone 2012, LUCB1"
        ),
        Algorithm("sar", sar, (FixedBudget,), "none", "Bubeck, Wang, Viswanathan 2013, SAR"),
        Algorithm(
            "median-elimination",
            median_elimination,
            (FixedConfidence,),
            ELEMENTWISE,
            "Even-Dar, Mannor, Mansour 2006, Median Elimination; Kalyanakrishnan, Stone 2010,"
            " Halving",
        ),
        Algorithm(
            "certified",
            certified,
            (FixedConfidence,),
            REGRET,
            "swaps of arms, docs/pairs.md; plans, docs/plans.md; split certificate,"
            " docs/certificate.md; shared items, docs/items.md; unknown variances, docs/normal.md;"
            " linear means, docs/linear.md",
            capped=True,
            items=True,
            normal=True,
            shared=True,
            keeps_money=True,
            constraints=True,
            features=True,
        ),
        Algorithm(
            "expected-loss",
            expected_loss,
            (FixedBudget,),
            "none",
            "empirical Bayes, docs/certificate.md",
            features=True,
            anytime=expected_loss_anytime,
            items=True,
            normal=True,
            shared=True,
            keeps_money=True,
            constraints=True,
        ),
        Algorithm(
            "uniform", uniform, BOTH, REGRET, "fixed design, docs/pairs.md", constraints=True
        ),
        Algorithm(
            "kl-lucb",
            kl_lucb,
            (FixedConfidence,),
            f"with the proven threshold, {ELEMENTWISE}",
            "Kaufmann, Kalyanakrishnan 2013, KL-LUCB",
        ),
        Algorithm(
            "track-and-stop",
            track_and_stop,
            (FixedConfidence,),
            f"k = 1 only; with a proven threshold, {REGRET}",
            "Garivier, Kaufmann 2016, Track-and-Stop; with an epsilon, Degenne, Koolen 2019",
        ),
        Algorithm(
            "kn",
            kn,
            (FixedConfidence,),
            "k = 1, normal rewards: the best arm with probability 1 - delta if it is ahead by"
            " epsilon",
            "Kim, Nelson 2001, fully sequential",
            normal=True,
            only_normal=True,
            shared=True,
        ),
        Algorithm(
            "rinott",
            rinott,
            (FixedConfidence,),
            f"k = 1, normal rewards: {REGRET}",
            "Rinott 1978, two stages",
            normal=True,
            only_normal=True,
        ),
        Algorithm(
            "ocba-m", ocba_m, (FixedBudget,), "none", "Chen, He, Fu, Lee 2008, OCBA-m", normal=True
        ),
    )
}


def find(algorithm: AlgorithmLike) -> Algorithm:
    """Find an algorithm.

    Args:
        algorithm: Its name, "package.module:function", a search function, or an `Algorithm`. A
            function that is not registered serves both goals, under its own name.

    Returns:
        The algorithm.

    Raises:
        UnknownName: If no algorithm has that name, or the reference cannot be imported.
        InvalidInput: If it is neither a name, a function nor an `Algorithm`.

    Example:
        >>> import shortlist
        >>> shortlist.find("lucb").name
        'lucb'
    """
    if isinstance(algorithm, Algorithm):
        return algorithm
    if isinstance(algorithm, str):
        name = str(algorithm)
        return _referred(name) if ":" in name else _registered(name)
    if not callable(algorithm):
        raise InvalidInput(
            f"`algorithm` is {shown(algorithm)}, but must be a name, a search function or an"
            " Algorithm"
        )
    return _of_function(algorithm)


@overload
def register(
    name: str,
    search: SearchFunction,
    *,
    goals: Goals = None,
    guarantee: str = "none",
    source: str = "",
    capped: bool = False,
    version: int = 1,
) -> Algorithm: ...
@overload
def register(
    name: str,
    search: None = None,
    *,
    goals: Goals = None,
    guarantee: str = "none",
    source: str = "",
    capped: bool = False,
    version: int = 1,
) -> Callable[[Function], Function]: ...
def register(
    name: str,
    search: SearchFunction | None = None,
    *,
    goals: Goals = None,
    guarantee: str = "none",
    source: str = "",
    capped: bool = False,
    version: int = 1,
) -> Algorithm | Callable[[Function], Function]:
    """Register a search of your own under a name; as a decorator, leave `search` out.

    Args:
        name: The name, which must be free. Every call that takes an algorithm takes it.
        search: A generator function (problem, rng, *, option=...). Default: return a decorator.
        goals: FixedConfidence, FixedBudget or both. Default: both.
        guarantee: One line for the list of algorithms. Default "none".
        source: Where it is described. Default: empty.
        capped: Whether it takes epsilon, delta and a budget at once. Default False.
        version: Raise it with any change of the batches it asks for: an experiment made with
            another version is not continued. Default 1.

    Returns:
        The algorithm, or a decorator that returns the function unchanged.

    Raises:
        InvalidInput: If the name is taken, or the function does not take (problem, rng).

    Example:
        >>> import numpy as np, shortlist
        >>> @shortlist.register("first-arms")
        ... def first_arms(problem, rng):
        ...     yield shortlist.Pulls(np.arange(problem.n_arms), np.ones(problem.n_arms, dtype=int))
        ...     return shortlist.Answer(np.arange(problem.k))
        >>> shortlist.simulate("first-arms", [0.9, 0.1], k=1, budget=2).pulls
        array([2])
    """
    name = _check_name(name)
    version = whole("version", version, at_least=1)
    served = _goals(goals)

    def put(function: Function) -> Function:
        check_takes_problem(name, function)
        ALGORITHMS[name] = Algorithm(
            name, function, served, guarantee, source, capped, version, guarded=True
        )
        return function

    if search is None:
        return put
    put(search)
    return ALGORITHMS[name]


def name_to_keep(algorithm: Algorithm) -> str:
    """The name by which `find` gives this very algorithm again, later and in other processes."""
    name = algorithm.name
    kept = ALGORITHMS.get(name)
    if ":" in name:
        kept = _referred(name)
    if kept != algorithm:
        raise InvalidInput(
            f"`algorithm` is {name}, a search without a name that it could be found by again, but"
            " what is kept needs one: `shortlist.register` it, or say 'package.module:function'"
        )
    return name


def _registered(name: str) -> Algorithm:
    if name not in ALGORITHMS:
        close = get_close_matches(name, ALGORITHMS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UnknownName(f"algorithm {name!r} is unknown; there are {', '.join(ALGORITHMS)}{hint}")
    return ALGORITHMS[name]


def _referred(reference: str) -> Algorithm:
    """The algorithm that "package.module:function" names, under that name."""
    target = imported(reference)
    if not isinstance(target, Algorithm) and not callable(target):
        raise InvalidInput(
            f"algorithm {reference!r} is {shown(target)}, but must be a search function or an"
            " Algorithm"
        )
    return replace(find(target), name=reference)


def _of_function(search: SearchFunction) -> Algorithm:
    for algorithm in ALGORITHMS.values():
        if algorithm.search == search:  # methods of an object are equal, never the same
            return algorithm
    name = getattr(search, "__name__", type(search).__name__)
    check_takes_problem(name, search)
    return Algorithm(name, search, source=getattr(search, "__module__", ""), guarded=True)


def _check_name(name: object) -> str:
    if not (isinstance(name, str) and name.isprintable() and name.strip() == name != ""):
        raise InvalidInput(f"`name` is {shown(name)}, but must be a text that can be typed")
    if ":" in name:
        raise InvalidInput(f"`name` is {shown(name)}, but a colon is for 'package.module:function'")
    if str(name) in (AUTOMATIC, *ALGORITHMS):
        raise InvalidInput(f"`name` is {shown(name)}, but that is taken; there are {_names()}")
    return str(name)


def _names() -> str:
    return ", ".join((AUTOMATIC, *ALGORITHMS))


def _goals(goals: Goals) -> tuple[type[Goal], ...]:
    if goals is None:
        return BOTH
    alone = isinstance(goals, type) or not isinstance(goals, Iterable)
    several: Iterable[Any] = (goals,) if alone else goals  # type: ignore[assignment]
    served = tuple(collected("goals", several, at_most=9))
    if not served or not all(isinstance(goal, type) and goal in BOTH for goal in served):
        raise InvalidInput(
            f"`goals` is {shown(goals)}, but must be FixedConfidence, FixedBudget or a tuple of"
            " them"
        )
    return served
