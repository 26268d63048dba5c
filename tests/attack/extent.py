"""How much of every attack is made, and from which seed.

`make test` makes a bounded part at a fixed seed, `make attack` an hour's worth at a new one."""

import os

SCALE = int(os.environ.get("SHORTLIST_ATTACK_SCALE", "1"))  # times as much as in `make test`
SEED = int(os.environ.get("SHORTLIST_ATTACK_SEED", "0"))
AGAIN = f"SHORTLIST_ATTACK_SEED={SEED} SHORTLIST_ATTACK_SCALE={SCALE}"  # to see the same once more
