"""The live page: `view.py` gathers what it shows, `picture.py` draws, `words.py` speaks,
`render.py` fills the templates, `stream.py` keeps it up to date."""

from shortlist.service.pages.render import error_page
from shortlist.service.pages.site import PAGES, Page, Site
from shortlist.service.pages.stream import Watches

__all__ = ["PAGES", "Page", "Site", "Watches", "error_page"]
