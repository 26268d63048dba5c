"""Bounds on the regret of a chosen set that hold with probability 1 - delta.

A certificate is a package: `pairs`, `plans`, `split`, `items`. In each, `bound` holds what the
proof rests on, `search` asks for pulls until the bound is small, `planning` makes that
cheap. `frame` is what they share, the fixed design behind them included. `certify` bounds the
regret of a set that was chosen elsewhere, by fresh rewards; `past` that of a set by the rewards
that chose it."""
