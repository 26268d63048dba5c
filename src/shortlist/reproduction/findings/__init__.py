"""What the rows say: curves and needs, the lead, and verdicts on claims and theorems."""
