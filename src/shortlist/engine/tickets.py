"""A ticket is one pull that somebody was asked to make."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from shortlist.arms import Label


@dataclass(frozen=True, slots=True)
class Ticket:
    """Pull `arm` once and tell the reward.

    `draw` counts the pulls of an arm from 0. `seed` depends on nothing but the experiment's seed,
    the arm and the draw: an evaluation that takes its randomness from it gives the same reward
    whoever makes it, and however often."""

    id: int
    """Its number in the experiment, from 0."""
    arm: Label
    """The label of the arm to pull."""
    draw: int
    """Which pull of this arm it is, from 0."""
    seed: int
    """63 bits for the randomness of the evaluation."""
    expires: float
    """When its result is due, in seconds since 1970; what then happens is the experiment's
    `on_late`."""
    experiment: str = field(default="", repr=False)
    """Whose it is: a ticket of another experiment is refused."""
    item: Label | None = None
    """The item to score the arm on, where there is a test set."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of rewards that were told: all of them count but those that are named here."""

    late: tuple[int, ...] = ()
    """Tickets whose reward is discarded because their lease was over: the experiment's `on_late`
    counts instead."""
    unused: tuple[int, ...] = ()
    """Tickets whose reward is not needed: the search has finished, the budget is spent, or the arm
    is retired."""

    def of(self, tickets: Iterable[int]) -> "Receipt":
        """The part of it that is about these tickets."""
        own = set(tickets)
        late = tuple(each for each in self.late if each in own)
        return Receipt(late, tuple(each for each in self.unused if each in own))


class State(StrEnum):
    """Where an experiment stands, or why fewer tickets were handed out than asked for."""

    READY = "ready"
    """There are tickets to hand out."""
    PENDING = "pending"
    """All that the search wants now are out: ask again when some were told."""
    FINISHED = "finished"
    """The answer is there, with the guarantee that was wanted."""
    BUDGET = "budget"
    """The answer is there, because the budget is spent."""
    ENDED = "ended"
    """The answer is there, but without the guarantee that was wanted: limits allow no more pulls,
    an arm left, or the rewards refute the declaration. The verdict of the result says which."""
    STOPPED = "stopped"
    """A ticket failed too often: see status(), then resume()."""


class Handout(list[Ticket]):
    """The tickets that were handed out. If they are fewer than asked for, `state` says why; else it
    is READY.

    If it is PENDING, `meanwhile` is what to serve if you cannot wait for a ticket: the best arm so
    far that did not leave and is not at its limit, None if there is none. What that gives is not
    to be told, and counts nowhere."""

    def __init__(
        self, tickets: Iterable[Ticket], state: State, meanwhile: Label | None = None
    ) -> None:
        super().__init__(tickets)
        self.state = state
        self.meanwhile = meanwhile

    def __repr__(self) -> str:
        return f"Handout({super().__repr__()}, {self.state!r})"
