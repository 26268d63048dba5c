"""The live path: from what a search asks for to calls of the user's function, and back to rewards.

`select` and `Experiment` share every step of it."""
