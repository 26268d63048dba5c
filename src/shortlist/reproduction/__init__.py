"""The paper's experiments and claims, measured again: `shortlist reproduce`.

`design` defines the runs, `runs` makes them and keeps the rows, `findings` judges them, `report`
shows the results, `study` is the command."""

from shortlist.reproduction.design import PANELS, Design, Panel
from shortlist.reproduction.study import reproduce

__all__ = ["PANELS", "Design", "Panel", "reproduce"]
