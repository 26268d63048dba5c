"""A store in PostgreSQL, which programs on any number of machines may share.

Needs psycopg and its pool (`pip install 'shortlist[postgres]'`)."""
