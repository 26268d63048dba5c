"""The certificate "drift" (docs/drift.md): arms compared within blocks of randomised visitors.

`bound` holds what the proof rests on: the terms of a block, the wealth of bets on pairs of arms,
the bounds on leads that follow, and the sample-ratio test. `planning` decides the terms of the next
block, which costs visitors only; `search` runs a test block by block.
`secondary_metrics` compares further figures of the same visitors with a control.

Words with a meaning of their own in this package:

    visitor    one pull: a person who is assigned to an arm at random
    block      visitors who are assigned with the same shares: a day, an hour
    share      the probability with which a visitor of a block is assigned to an arm
    in play    an arm with a share above 0 in a block
    terms      what is fixed before the first visitor of a block: shares, step and centre
    lead       the rate of one arm less that of another, at one moment or on average
    clock      the sum of the steps of all visitors of the blocks that a pair shares
    level      the rate of all arms together, which drifts"""
