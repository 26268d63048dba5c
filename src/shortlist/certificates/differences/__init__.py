"""The certificate "differences": pairs of arms compared pull by pull (docs/normal.md).

All arms in play are pulled equally often in a batch. The r-th pulls of all of them form a *row*:
independent pulls, or pulls on one shared seed. A pair of arms bets on its difference in every row
that has both.

Words of this package:

    row     one pull of every arm in play, all at the same place of the batch
    lead    mean of arm j less mean of arm i, for an ordered pair (i, j)
    clock   how strongly a pair bets on a row; fixed by earlier batches
    slope   what the logarithm of a wealth gains per unit of the lead that is tested

`bound` has what the proof rests on, `fallback` the two-stage sample for ties, `planning` decides
which arms are pulled next and has the constants that cost pulls only, `search` has the search for a
guarantee and the one that spends a budget without one."""
