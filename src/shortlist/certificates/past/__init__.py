"""Bounds on the regret of a set from the rewards that chose it, for all sets at once.

Words used here only (docs/assess.md has the proofs):

    charge      evidence against a value of the mean of one arm, for one direction
    cell        an interval of values of a mean, with a lower bound on the charge of all of them
    price       the Lagrange multiplier of the sum of charges
    reach       the largest mean of an arm, less what it is charged at a price
    threshold   what the charges of the arms of one swap exceed with small probability only"""
