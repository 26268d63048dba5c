"""Experiments over HTTP: one process in front of a store, for many machines and for eyes.

`routes.py` is the table of all there is to call, `endpoints.py` what each does, `app.py` what
happens to every request before and after: who asks (`tokens.py`), how much and how often
(`limits.py`), in which words it is refused (`replies.py`). `opened.py` keeps experiments open and
`writes.py` writes down together what comes in together. The live page is `pages/`. It stands on the
public methods of `Experiment` and on the protocols of stores, whichever store it is.

Needs Starlette, uvicorn and Jinja2 (`pip install 'shortlist[serve]'`), but for `tokens.py`."""
