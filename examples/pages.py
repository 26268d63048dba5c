"""A/B/n test of pages: clicks come days later, and every day is told as counts.

A feature-flag service splits the visitors by the shares of the day; a warehouse counts, per page,
the visitors who came for the first time on that day, and their clicks within two days. Everything
about the test is kept in one file. Start this again to continue; delete the file to start over."""

import sys
from pathlib import Path

import numpy as np

import shortlist

CLICK_RATES = {"plain": 0.11, "photo": 0.15, "video": 0.14, "quote": 0.12}  # unknown in practice
VISITORS, DELAY = 2000, 2  # per day; days until the clicks of a day are complete


def warehouse(day: int, percent: dict[str, float]) -> dict[str, tuple[int, int]]:
    """Visitors and clicks of a day per page; half as many visitors click at weekends."""
    rng = np.random.default_rng(day)
    pages = [page for page, share in percent.items() if share]
    visitors = rng.multinomial(VISITORS, [percent[page] / 100 for page in pages])
    level = 0.5 if day % 7 > 4 else 1.0
    clicks = rng.binomial(visitors, [level * CLICK_RATES[page] for page in pages])
    return dict(zip(pages, zip(visitors.tolist(), clicks.tolist(), strict=True), strict=True))


def main(store: Path) -> None:
    """Run the test until the best page is known, up to 0.01 of click rate."""
    with shortlist.Experiment.create(
        list(CLICK_RATES),
        k=1,
        epsilon=0.01,
        delta=0.05,
        rewards="binary",
        per_day=VISITORS,
        delay=DELAY,
        min_blocks=7,
        control="plain",
        store=store,
        exist_ok=True,
    ) as test:
        for day in range(365):
            today = test.shares(f"day {day}")  # the same again, if the program was stopped
            if not today.block:
                break
            if day >= DELAY:
                complete = f"day {day - DELAY}"
                percent = {
                    str(page): share for page, share in test.shares(complete).percent.items()
                }
                test.tell_counts(complete, warehouse(day - DELAY, percent))
        print(test.result())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pages.db"))
