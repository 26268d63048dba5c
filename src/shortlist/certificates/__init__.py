"""Bounds on the regret of a chosen set that hold with probability 1 - delta.

`split` proves a choice on fresh rewards, where the errors of independent arms average out;
`certify` does it for a set that was chosen elsewhere."""
