"""The paired certificate of docs/items.md: bets without replacement on differences of two arms.

`capital` bets on every pair, `verdicts` turns capital into bounds on differences and into arms that
are out, `matching` into a bound for a set; `standing` knows which cells were seen, and `item_race`
is the search."""
