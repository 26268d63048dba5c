"""Where to pull next: a posterior of every arm, and pulls shared out by expected loss.

Nothing is proved here; the guarantees are those of `certificates`."""
