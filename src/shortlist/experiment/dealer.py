"""Which tickets are dealt out next, and whether there is anything left to deal."""

from itertools import islice

from shortlist.experiment.affording import affordable, ending
from shortlist.experiment.leaving import worst_rewards
from shortlist.experiment.ticket import State
from shortlist.experiment.writer import Writer

WINDOW = 1000  # tickets looked through at a time for those of arms that left


class Dealer(Writer):
    """What `ask` deals out: nothing of arms that left, nothing that the budget does not pay for."""

    def _next_tickets(self, holder: str, limit: int, now: float) -> list[int]:
        """The tickets to hand out, after those of arms that left were told."""
        self._tell_worst(now, holder, limit)
        available = list(islice(self._known.available(holder, now), limit))
        return affordable(self._known, available, now)

    def _settle(self, now: float) -> None:
        """Leave the log so that every reader knows whether there are tickets to hand out."""
        if self._known.ledger.retired:  # else the search goes on when nobody waits for it
            self._catch_up()
            if self._known.ledger.steps:  # before the first ticket the clock does not run
                self._tell_worst(now)

    def _tell_worst(self, now: float, holder: str = "", limit: int = 1) -> None:
        """Tell the worst reward of the next tickets that are of arms that left."""
        while self._known.ledger.retired and self._known.replay.outcome is None:
            window = list(islice(self._known.available(holder, now), max(limit, WINDOW)))
            told, unpaid = worst_rewards(self._known, window, now)
            if not told:
                break
            events = [*self._known.new_steps(now), *unpaid]
            self._store.append(self.name, told=told, events=events)
            self._catch_up()

    def _end_if_spent(self, now: float, state: State) -> State:
        """End the experiment if its budget does not pay for what it asked for; its state then."""
        events = ending(self._known, now)
        if not events:
            return state
        self._store.append(self.name, events=events)
        self._catch_up()
        return self._known.state(now)
