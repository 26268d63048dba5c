"""Live experiments: a search that is asked for pulls and told their rewards, whatever happens.

`experiment.py` has all that can be done to one, `view.py` all that can be seen of it, `writer.py`
the transactions. A `Replica` is what a program knows: `ledger.py` what was told and who holds what,
`replay.py` the search that was run again with it. `telling.py` says what may be told, `worker.py`
makes pulls with a function, `export.py` and `copying.py` take it elsewhere."""

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
