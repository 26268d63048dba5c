"""Live experiments: a search that is asked for pulls and told their rewards, whatever happens.

`experiment.py` has all that can be done to one and seen of it. What a program knows of it comes
from the log: `ledger.py` has what was told and who holds what, `replay.py` the search that was run
again with it. `tickets.py` numbers the pulls, `log_entries.py` says what may be told, `workers.py`
makes pulls with a function, `export.py` takes an experiment elsewhere. `blocks.py` and `live.py`
are for tests that are counted by the day."""

from shortlist.engine.eta import Outlook, outlook
from shortlist.engine.experiment import Experiment
from shortlist.engine.export import Copied, Verdict, copy, export_lines, import_lines, verify
from shortlist.engine.locate import archive, delete, rename
from shortlist.engine.status import Status
from shortlist.engine.tickets import Handout, Receipt, State, Ticket

__all__ = [
    "Copied",
    "Experiment",
    "Handout",
    "Outlook",
    "Receipt",
    "State",
    "Status",
    "Ticket",
    "Verdict",
    "archive",
    "copy",
    "delete",
    "export_lines",
    "import_lines",
    "outlook",
    "rename",
    "verify",
]
