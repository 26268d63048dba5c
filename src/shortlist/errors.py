"""Every error this package raises on purpose.

ShortlistError
└── InvalidInput (ValueError)         a value breaks a rule; the message names both
    ├── UnknownName (LookupError)     no algorithm or instance of that name
    ├── UnsupportedGoal               the algorithm does not serve this goal
    └── InvalidReward                 a reward is NaN, infinite or outside its declared range
"""


class ShortlistError(Exception):
    """Root of all errors of this package."""


class InvalidInput(ShortlistError, ValueError):
    """A value breaks a rule; the message names the value, then the rule."""


class UnknownName(InvalidInput, LookupError):
    """A name is not in the list it was looked up in."""


class UnsupportedGoal(InvalidInput):
    """The algorithm does not serve the goal it was given."""


class InvalidReward(InvalidInput):
    """A reward is NaN, infinite or outside its declared range."""
