"""State machines over an experiment, wherever it is kept: few examples of every place in
`make test`, and as many more as SHORTLIST_ATTACK_SCALE says."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attack_scale import SCALE
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from places import Remote, create, log_of, opening, reopen

from shortlist.stores import News, Store

EXAMPLES = {"memory": 12, "sqlite": 6}
FEW = 3  # examples where every step takes longer
NAME = "experiment"


class Machine(RuleBasedStateMachine):
    """An experiment, a reader that has it open too, and a clock that is set by hand.

    Whoever opens it comes as another program would."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.now = 0.0
        self._folder = TemporaryDirectory()
        self._opened: list[Any] = []
        remote = Remote() if kind == "http" else None
        self._another = opening(kind, Path(self._folder.name)) if remote is None else lambda: remote

    def clock(self) -> float:
        return self.now

    def make(self, *asked: Any, **how: Any) -> None:
        """Make the experiment, and open it for the reader."""
        self.experiment = create(*asked, store=self.another(), clock=self.clock, **how)
        self.reader = self.open()

    def open(self) -> Any:
        return reopen(self.another(), NAME, clock=self.clock)

    def another(self) -> Any:
        place = self._another()
        self._opened.append(place)
        return place

    @property
    def store(self) -> Store:
        """The store that the experiment itself writes to, not the reader's."""
        kept: Store = self.experiment.store if self.kind != "http" else log_of(self._opened[0])
        return kept

    def log(self) -> News:
        return log_of(self._opened[0]).read(NAME)

    def told(self) -> dict[int, float]:
        """Rewards by ticket, as they are in the log."""
        told = self.log().told
        return dict(zip(told.tickets.tolist(), told.rewards.tolist(), strict=True))

    def end(self) -> None:
        """What is to hold at the end, if the experiment was begun."""

    def teardown(self) -> None:
        try:
            if hasattr(self, "reader"):
                self.end()
        finally:
            for place in self._opened:
                place.close()
            self._folder.cleanup()


def hold(machine: type[Machine], kind: str, steps: int) -> None:
    """Let so many things happen to an experiment at that place, again and again."""
    how = settings(
        max_examples=EXAMPLES.get(kind, FEW) * SCALE,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    there: Any = partial(machine, kind)  # as good as a class of machines
    run_state_machine_as_test(there, settings=how)
