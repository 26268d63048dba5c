"""The certificate "items" (docs/items.md): bets without replacement on the scores of a test set.

`bound` holds what the proof rests on: the wealth of bets on pairs of arms and on single arms, the
bounds on differences that follow, and the assignment bound for a set. `race` decides what to bet
on, `search` which cells to score next; both cost cells only.

Ratio of cells at half and at twice the value of a constant of `race`, by

    python benchmarks/items.py --only tuning --matrices 3 --runs 8 --seed 8000

with `MANY_ARMS` and `LOPSIDED` out of reach: another seed alone gives a ratio of 0.94, so only
`HOPELESS_ARM` (1.25 at half) and `FIRST_ITEMS` (1.07 at half) matter.

Words with a meaning of their own in this package:

    place     position of an item in the random order that all arms go through
    reached   number of items of that order that an arm was scored on
    known     a score that was given with the problem, before any cell was asked for
    out       an arm that is proved not to be among the best K"""
