"""The runs: cut into tasks, measured, and kept as rows of one file that can be gone on with."""
