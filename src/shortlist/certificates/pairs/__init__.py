"""The swap race of docs/pairs.md: bets with common clocks bound every swap of arms at every stage.

`bets` are on one arm, `stages` keep the clocks of all arms together, `swaps` turns capital into
bounds; `standing` fixes the next stage, `net` is the fixed design behind it all, `race` knows where
a race stands, and `swap_race` is the search."""
