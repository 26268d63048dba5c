"""The certificate "plans" (docs/plans.md): the same 0/1 rewards choose the set and prove the bound.

`bound` and `stage` hold what the proof rests on: the states in which plans stop, the losses of
accepting and rejecting an arm, the check of exponential moments (*) at every mean, the boundaries
with their shares of delta, the order in which arms are decided, and how bounds are combined. What
only costs pulls if it is wrong: `belief` about the means, `planning` of when arms stop and what
they are charged, `search` of stages and looks, also with a price per arm, `tuning`.

Words with a meaning of their own in this package:

    plan       levels of pulls at which an arm stops at some numbers of successes, and charges
    state      pulls and successes of an arm that has stopped
    boundary   a value between the means of the best K arms and those of the others
    stakes     boundary b, strength lambda and reach K epsilon: the weight of a wrong choice
    lead       the extra charge for rejecting an arm in a state rather than accepting it
    block      arms that are decided together, after those of the blocks before
    track      one way to decide all arms, with its own target and share of delta
    stage      plans for all arms and the proof from the states in which they stopped
    draft      plans for all groups of arms with their expected pulls and charges
    class      arms that share a price, where not every set may be chosen (docs/prices.md)"""
