"""How long a ticket is its holder's, and what happens when that is over.

The end of a lease is a fact about how long an evaluation takes, and so perhaps about its reward.
docs/late.md proves what may follow from it without changing the law of the rewards that count."""

from dataclasses import dataclass
from typing import Literal

WAIT: Literal["wait"] = "wait"  # for the result, however long it takes
AGAIN: Literal["again"] = "again"  # hand the ticket out again; the first result counts

FREE = 0.0  # the end of a lease that nobody holds any more
# A ticket that is waited for is held so many seconds beyond its due time, for 35,000 years. A power
# of 2, so that the due time comes back from the log as it is on the ticket.
FOREVER = 2.0**40


@dataclass(slots=True)
class Lease:
    """Who was asked last to make a pull, and until when nobody else is."""

    worker: str  # "" for somebody without a name
    end: float

    @property
    def due(self) -> float:
        """When the result is expected; what is waited for has no other end."""
        return self.end - FOREVER if self.endless else self.end

    @property
    def endless(self) -> bool:
        """Whether the result is waited for, however long it takes."""
        return self.end >= FOREVER
