"""The split certificate (docs/certificate.md): rewards that choose are never rewards that prove.

`bound` and `offsets` hold what the proof rests on. `planning` drafts a certificate from
`expected_charges`, `search` decides when to use a draft and has the fixed design behind it; all
these cost pulls only.

benchmarks/sensitivity.py (12 runs) halves and doubles their constants. Another seed alone changes
pulls by a ratio of 1.19; beyond that only `LEAST_STRENGTH` (1.32 when doubled) and `USUAL` (1.20)
matter.

Words with a meaning of their own in this package:

    charge      evidence against the place of one arm, on its fresh rewards
    strength    weight of a unit of charge in the exponent of the bound
    offset      constant of a charge that makes its exponential moment right
    start       number of successes that are not charged
    reach       distance of a mean from the boundary up to which moments are right
    candidate   pulls, start and slope with which one arm may be certified
    draft       a candidate for every arm, not declared yet
    holdout     all fresh pulls so far"""
