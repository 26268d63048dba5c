"""Plans declared in advance, docs/plans.md: the same 0/1 rewards choose the set and prove it.

What is declared, on which the guarantee rests: the `stop_states` of a plan, the `losses` of taking
and leaving an arm, its `charges` and the check of their `moments` at every mean; `boundaries` with
their weights; the order of `settling`, in which arms tell about those after them; the `parts` that
add up what arms are charged; the `claims` that tracks and boundaries make together; and a `stage`
of all that. What only costs pulls if it is wrong: `beliefs` about the means, `counts` of the arms
that will be taken, the `policies` that stop, `drafts`, which finds the plans that should do, and
`sketches`, which finds how strong they should be. `look` goes through the stages, `plan_search`
through the looks; `tuning` holds the constants."""
