"""The paper's experiments and claims, measured anew: `shortlist reproduce`.

`design` says what is run, `runs` runs it and keeps the rows, `findings` judges what they say, and
`report` shows it. Each knows those before it and none after it."""

from shortlist.reproduction.design import PANELS, Design, Panel
from shortlist.reproduction.study import reproduce

__all__ = ["PANELS", "Design", "Panel", "reproduce"]
