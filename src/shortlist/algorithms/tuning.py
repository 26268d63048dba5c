"""What may be tuned about algorithms. It costs pulls or time, never a guarantee.

Above each constant stands what it is and its unit; beside it how results change if it is halved
and doubled: the ratio of pulls of `lucb` and `clucb-pac`, measured by

    python benchmarks/sensitivity.py --runs 12

Another seed alone changes pulls by a ratio of 1.19 and regret by 1.08, so only larger differences
tell anything. Of a factor above or below 1 the distance from 1 is halved and doubled. Read them as
`tuning.NAME`, so that a benchmark can vary them."""

# subroutines/race.py:
# times `growth` by which an arm's pulls grow before it is looked at again
OWN_GROWTH = 5  # ×½: pulls 0.99, ×2: 1.03
