"""The certificate "pairs" (docs/pairs.md): bets with common clocks bound every swap of arms.

`bound` and `swap_bounds` hold what the proof rests on, `fallback` the fixed design behind them.
`Likelihood` and `TwoArmBoundary` are further proofs for special cases. `planning` decides which
arms to pull and how to bet, which costs pulls only; `search` runs the race.

Words with a meaning of their own in this package:

    race       the search: arms leave it as soon as every swap with them is bounded
    swap       arms of the choice exchanged for as many arms outside it
    gap        the sum of the means that a swap brings in less the sum of those it removes
    stage      a number of pulls per arm with bets that are fixed before its rewards are seen
    clock      the sum of the strengths of all bets so far, the same for every arm
    open       a pair of arms whose gap is not bounded yet, and the arms of such a pair
    edge       the best arm outside the choice and the worst one inside it
    pilot      the first batch, where it decides how delta is shared and carries no bets
    nominee    the one arm that likelihood ratios compare with all others, its rivals
    lead       how many successes one of two arms is ahead of the other"""
