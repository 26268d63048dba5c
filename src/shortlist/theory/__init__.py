"""How hard an instance is, and why no search can do with fewer pulls: Sections 1.1, 1.2 and 4."""
