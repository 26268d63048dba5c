"""The split certificate for many normal arms of unknown variances (docs/normal.md, Theorem 4).

Exploration fixes the choice, a boundary and a plan. Fresh pulls then charge every arm for the
evidence against its place, and for the variance that they show. Everything is in units of epsilon.

Words of this package:

    charge     contribution of an arm to the bound, from its fresh pulls
    strength   lambda, what a unit of the bound weighs in the exponent; one for all arms
    slope      mu, what a unit of evidence of an arm weighs; at most the strength
    cap        upper bound on the deviation of an arm, from its first pulls

`bound` has what the proof rests on, `search` explores and drafts looks."""
