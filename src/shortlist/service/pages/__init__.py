"""The live page: `view.py` collects what it shows, `charts.py` draws, `render.py` fills the
templates, `stream.py` sends updates, `site.py` answers requests."""

from shortlist.service.pages.render import error_page
from shortlist.service.pages.site import Site

__all__ = ["Site", "error_page"]
