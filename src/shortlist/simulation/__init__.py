"""Simulated arms, one run against them, and many runs side by side."""
