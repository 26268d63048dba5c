"""The paper's experiments and claims, measured anew: `shortlist reproduce`."""
