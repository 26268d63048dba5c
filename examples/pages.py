"""A/B/n test of pages: visitors come one by one, clicks come later, and the program may be stopped.

Everything is kept in one file. Start this again and it goes on; delete the file to begin anew."""

import random
import sys
from pathlib import Path

import shortlist

CLICK_RATES = {"plain": 0.11, "photo": 0.24, "video": 0.21, "quote": 0.13}  # nobody knows them


def clicked(page: str, visitor: random.Random) -> bool:
    """Show the page to a visitor: yours would answer hours later."""
    return visitor.random() < CLICK_RATES[page]


def main(store: Path) -> None:
    """Serve visitors until it is known which page is best, up to 0.1 of click rate."""
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
