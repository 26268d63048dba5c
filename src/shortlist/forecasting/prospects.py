"""What a forecast says: a prospect for every algorithm and goal, in figures and as tables."""

from dataclasses import dataclass, field

import numpy as np

from shortlist.algorithms import AlgorithmLike, find
from shortlist.arrays import FloatArray, IntArray
from shortlist.digits import bound_text, confidence_text, given_text
from shortlist.errors import InvalidInput
from shortlist.metrics import ROUNDING
from shortlist.tables import Tabular, TextTable, readable

QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False)
class Prospect:
    """What an algorithm is to spend and to lose, in every run."""

    algorithm: str  #: its name
    budget: float | None  #: what it may spend; None if it stops by epsilon and delta
    pulls: IntArray = field(repr=False)  #: (runs,) what every run spends
    regret: FloatArray = field(repr=False)  #: (runs,) what every run loses, R_T
    epsilon: float | None  #: the regret from which on a run has failed, if there is one
    rounds: IntArray = field(repr=False)  #: (runs,) requests, each after all rewards of the last
    days: FloatArray | None = field(repr=False, default=None)  #: (runs,) if their pace was given
    n_cells: int | None = None  #: arms times items, where there is a test set
    spent: FloatArray | None = field(repr=False, default=None)  #: (runs,) cost, where arms have one
    #: (runs,) the regret bound proved, where arms have limits; NaN where nothing is proved
    bound: FloatArray | None = field(repr=False, default=None)

    @property
    def ended(self) -> float | None:
        """The share of runs that limits ended before epsilon was proved; None without limits or
        without epsilon."""
        if self.bound is None or self.epsilon is None:
            return None
        return float((~(self.bound <= self.epsilon + ROUNDING)).mean())

    @property
    def proved(self) -> float | None:
        """The median bound of the runs that limits ended; None if they proved nothing."""
        if not self.ended:
            return None
        assert self.bound is not None
        unproved = np.where(np.isnan(self.bound), np.inf, self.bound)
        median = quantiles(unproved[~(unproved <= (self.epsilon or 0.0) + ROUNDING)])["p50"]
        return median if np.isfinite(median) else None

    @property
    def share(self) -> float | None:
        """The mean share of the cells that is evaluated; None where there is no test set."""
        return None if self.n_cells is None else float(self.pulls.mean()) / self.n_cells

    @property
    def failure_rate(self) -> float | None:
        """The share of runs that lost more than epsilon; None where no epsilon was given.

        A run that limits ended promised its `bound` instead of epsilon, or nothing: the share is
        that of the runs with a bound, and None if there are none."""
        if self.epsilon is None:
            return None
        if self.bound is None or self.budget is not None:
            return float((self.regret > self.epsilon + ROUNDING).mean())
        promised = ~np.isnan(self.bound)
        if not promised.any():
            return None
        allowed = np.maximum(self.bound[promised], self.epsilon)
        return float((self.regret[promised] > allowed + ROUNDING).mean())

    def summary(self) -> dict[str, object]:
        """The figures of one entry of the command line's JSON."""
        cells = {"mean": float(self.pulls.mean()), "share": self.share}
        return {
            "algorithm": self.algorithm,
            "budget": self.budget,
            "pulls": quantiles(self.pulls),
            "regret": quantiles(self.regret),
            "rounds": quantiles(self.rounds),
            **({} if self.days is None else {"days": quantiles(self.days)}),
            **({} if self.n_cells is None else {"cells": cells}),
            **({} if self.spent is None else {"spent": quantiles(self.spent)}),
            **({} if self.ended is None else {"limits": self._limits()}),
            "failure_rate": self.failure_rate,
        }

    def _limits(self) -> dict[str, object]:
        return {"ended": self.ended, "bound": self.proved}

    def said_of_limits(self) -> str:
        """How often limits end a run, and what it proves then, in a sentence; "" if never."""
        if not self.ended:
            return ""
        ended = (
            f"Limits end {100 * self.ended:.3g} % of the runs of {self.algorithm} before epsilon"
        )
        if self.proved is None:
            return f"{ended}; most of these prove nothing."
        return f"{ended}; half of these prove a regret of {readable(self.proved)} or less."


@dataclass(frozen=True, eq=False)
class Forecast(Tabular):
    """A prospect for every algorithm and goal, with the settings they were simulated for."""

    prospects: tuple[Prospect, ...] = field(repr=False)  #: in the order of goals, then algorithms
    arms: str  #: what was assumed about them, in words
    n_arms: int  #: how many arms there are
    k: int  #: how many are to be chosen
    epsilon: float | None  #: the regret allowed, if it was asked for
    delta: float  #: the probability of losing more than epsilon
    runs: int  #: simulated runs of every algorithm
    seed: int  #: what all randomness came from
    left_out: tuple[str, ...]  #: algorithms that would have taken too long
    seconds: float  #: that all runs took together

    def prospect(self, algorithm: AlgorithmLike, budget: float | None = None) -> Prospect:
        """The prospect of that algorithm for that budget, or for epsilon and delta."""
        name = algorithm if isinstance(algorithm, str) else find(algorithm).name
        for prospect in self.prospects:
            if (prospect.algorithm, prospect.budget) == (name, budget):
                return prospect
        goal = "epsilon" if budget is None else f"a budget of {budget}"
        raise InvalidInput(f"{name!r} for {goal} was not forecast")

    def tables(self) -> list[TextTable]:
        """A table of pulls for epsilon, and one of regret for every budget."""
        budgets = list(dict.fromkeys(prospect.budget for prospect in self.prospects))
        return [self._table(budget, budget == budgets[0]) for budget in budgets]

    def _table(self, budget: float | None, first: bool) -> TextTable:
        rows = [_cells(each) for each in self.prospects if each.budget == budget]
        shares = tuple(quantiles(np.zeros(1)))
        timed = any(each.days is not None for each in self.prospects)
        share = ["share"] * (self._unit == "cells")
        last = ("rounds", *(["days"] * timed), *share, "failure rate")
        about = f"The best {self.k:,} of {self.arms}, {self.runs} runs of every algorithm\n\n"
        return TextTable(
            ("algorithm", *shares, *last),
            rows,
            title=(about if first else "") + self._heading(budget),
            verdict=self._verdict(budget),
        )

    @property
    def _unit(self) -> str:
        """What is spent."""
        if self.prospects[0].spent is not None:
            return "cost"
        return "pulls" if self.prospects[0].n_cells is None else "cells"

    def _heading(self, budget: float | None) -> str:
        if budget is not None:
            spent = f"a cost of {budget:,}" if self._unit == "cost" else f"{budget:,} {self._unit}"
            return f"Regret after {spent}:"
        sure = f"with probability {confidence_text(1 - self.delta)}"
        limited = " or limits end it" if self.prospects[0].bound is not None else ""
        assert self.epsilon is not None, "without a budget an epsilon ends the search"
        until = f"until at most {given_text(self.epsilon)} is lost {sure}{limited}"
        return f"{self._unit.capitalize()} {until}:"

    def _verdict(self, budget: float | None) -> str:
        """What limits do to the runs of every algorithm, and what was not tried."""
        here = [each for each in self.prospects if each.budget == budget]
        said = [each.said_of_limits() for each in here]
        said.append(self._missing() if budget is None else "")
        return "\n".join(filter(None, said))

    def _missing(self) -> str:
        """Nobody should take what was not tried for what does not exist."""
        names = ", ".join(self.left_out)
        return f"Left out, unless asked for by name, since it takes long: {names}" if names else ""

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON."""
        return {
            "arms": self.arms,
            "n": self.n_arms,
            "k": self.k,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "runs": self.runs,
            "seed": self.seed,
            "prospects": [prospect.summary() for prospect in self.prospects],
            "left_out": list(self.left_out),
            "seconds": self.seconds,
        }


def quantiles(values: FloatArray | IntArray) -> dict[str, float]:
    """{"p10": x, ...}: 10 % of the runs have at most x."""
    return {
        f"p{100 * share:g}": np.quantile(values, share, method="inverted_cdf").item()
        for share in QUANTILES
    }


def _cells(prospect: Prospect) -> tuple[str, ...]:
    """A row: the pulls where the search stops by itself, the regret where a budget ends it."""
    spent = prospect.pulls if prospect.spent is None else prospect.spent
    shares = quantiles(spent if prospect.budget is None else prospect.regret)
    others: list[float | None] = [quantiles(prospect.rounds)["p50"]]
    if prospect.days is not None:
        others.append(quantiles(prospect.days)["p50"])
    if prospect.share is not None:
        others.append(prospect.share)
    others.append(prospect.failure_rate)
    # so many runs stay below these: a figure that is rounded down would say so of fewer
    below = [
        readable(each) if isinstance(each, int) else bound_text(each) for each in shares.values()
    ]
    return (prospect.algorithm, *below, *map(readable, others))
