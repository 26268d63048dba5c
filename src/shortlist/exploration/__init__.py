"""Where to pull next: what is believed about every arm, and pulls shared out by expected loss.

It guides and proves nothing; the guarantee is the business of `certification`."""
