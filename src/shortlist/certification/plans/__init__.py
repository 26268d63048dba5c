"""Plans declared in advance, docs/plans.md: the same 0/1 rewards choose the set and prove it.

What is declared, on which the guarantee rests: the `stop_states` of a plan, the `losses` of its
labels, its `charges` and the check of their `moments` at every mean; `boundaries` with their shares
of delta; and a `stage`, which adds up what the arms are charged. What only costs pulls if it is
wrong: `beliefs` about the means, the `policies` that stop and label, `drafts`, which finds the
plans that should do, and `sketches`, which finds how strong they should be. `look` goes through the
stages, `plan_search` through the looks; `tuning` holds the constants."""
