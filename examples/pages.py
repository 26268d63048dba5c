"""A/B/n test of pages: visitors come one by one, clicks come later, and the program may be stopped.

Everything is kept in one file. Start this again to continue; delete the file to start over."""

import random
import sys
from pathlib import Path

import shortlist

CLICK_RATES = {"plain": 0.11, "photo": 0.24, "video": 0.21, "quote": 0.13}  # unknown in practice


def clicked(page: str, visitor: random.Random) -> bool:
    """Show the page to a visitor; a real visitor may answer hours later."""
    return visitor.random() < CLICK_RATES[page]


def main(store: Path) -> None:
    """Serve visitors until the best page is known, up to 0.1 of click rate."""
    visitors = random.Random(7)
    with shortlist.Experiment.create(
        list(CLICK_RATES),
        k=1,
        epsilon=0.1,
        delta=0.05,
        rewards="binary",
        store=store,
        exist_ok=True,
    ) as experiment:
        while tickets := experiment.ask(20, worker="web server"):
            results = [(ticket, clicked(str(ticket.arm), visitors)) for ticket in tickets]
            experiment.tell_many(results)
        print(experiment.result())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pages.db"))
