"""Plans declared in advance, docs/plans.md: the same 0/1 rewards choose the set and prove it.

What is declared, on which the guarantee rests: the `stop_states` of a plan, the `losses` of its
labels, its `charges` and the check of their `moments` at every mean; `boundaries` with their shares
of delta. What only costs pulls if it is wrong: `beliefs` about the means, the `policies` that stop
and label, and `look`, which finds the plans that should do. `plan_search` puts them together;
`tuning` holds the constants."""
