"""Live experiments: a search that is asked for pulls and told their rewards, and survives whatever
happens between.

`experiment.py` is the whole of it on one page. `course.py` runs the search, `deal.py` numbers what
it asks for, `ledger.py` knows what was told and who holds what, `telling.py` says what may be told,
`jsonl.py` takes it all elsewhere."""

from shortlist.experiment.experiment import Experiment
from shortlist.experiment.export import export_lines, import_lines
from shortlist.experiment.status import Status
from shortlist.experiment.ticket import Handout, State, Ticket

__all__ = ["Experiment", "Handout", "State", "Status", "Ticket", "export_lines", "import_lines"]
