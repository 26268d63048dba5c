"""shortlist: find the K best of n noisy alternatives with few evaluations and a guarantee."""
