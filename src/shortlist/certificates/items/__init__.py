"""The certificate "items" (docs/items.md): bets without replacement on the scores of a test set.

`bound` holds what the proof rests on: the wealth of bets on pairs of arms and on single arms, the
bounds on differences that follow, and the assignment bound for a set. `evidence` decides what to
bet on, `search` which cells to score next; both cost cells only, and so does `tuning`.

Words with a meaning of their own in this package:

    place     position of an item in the random order that all arms go through
    reached   number of items of that order that an arm was scored on
    known     a score that was given with the problem, before any cell was asked for
    out       an arm that is proved not to be among the best K"""
