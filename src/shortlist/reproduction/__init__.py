"""The paper's experiments and claims, measured again: `shortlist reproduce`.

`design` defines the runs, `runs` makes them and keeps the rows, `findings` judges them, `report`
shows the results and has the command."""

from shortlist.reproduction.design import PANELS, Design, Panel
from shortlist.reproduction.report import reproduce

__all__ = ["PANELS", "Design", "Panel", "reproduce"]
