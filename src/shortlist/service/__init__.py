"""Experiments over HTTP: one process that serves a store to other machines and to browsers.

`routes.py` lists the API and `endpoints.py` implements it. `service.py` has what every request
goes through: access control (`auth.py`), limits and errors (`replies.py`), metrics
(`prometheus.py`). `experiments.py` keeps experiments open and writes in group commit. `pages/` is
the live page; `app.py` connects all of it, `server.py` runs it.

Needs Starlette, uvicorn and Jinja2: `pip install 'shortlist[serve]'`."""
