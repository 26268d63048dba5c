"""Tokens: made and revoked on the command line, kept as digests, compared in constant time."""

import hmac
import secrets
import time
from collections.abc import Sequence
from hashlib import sha256

from shortlist.errors import InvalidInput
from shortlist.storage.tokens import Scope, Token, TokenStore

PREFIX = "shortlist_"  # so that a token is known for one wherever it turns up
BYTES = 32  # of randomness: too many to guess, so that one plain SHA-256 is enough
FRESH = 1.0  # seconds after which tokens are read again: so long a revoked one may still work
LONGEST = 200  # characters of a name, or of what may be a token


def make_token(store: TokenStore, name: str, scope: Scope, now: float) -> str:
    """Make a token and return its text, which is kept nowhere and never shown again."""
    if not (name.strip() and len(name) <= LONGEST and name.isprintable()):
        rule = f"must be 1 to {LONGEST} printable characters"
        raise InvalidInput(f"the name of the token is {name!r}, but {rule}")
    text = PREFIX + secrets.token_urlsafe(BYTES)
    store.add_token(Token(name, scope, digest(text), now))
    return text


def digest(text: str) -> str:
    """What is kept of a token."""
    return sha256(text.encode(errors="replace")).hexdigest()


def holder(text: str, tokens: Sequence[Token]) -> Token | None:
    """The token with that text, if it is not revoked.

    All are compared, each in constant time: how long it takes says nothing about any of them."""
    given = digest(text[:LONGEST])
    found = [token for token in tokens if hmac.compare_digest(token.digest, given)]
    return next((token for token in found if token.revoked is None), None)


class Tokens:
    """The tokens of a store, read again every second."""

    def __init__(self, store: object) -> None:
        self._store = store if isinstance(store, TokenStore) else None
        self._known: Sequence[Token] = ()
        self._read = -FRESH

    @property
    def stale(self) -> bool:
        """Whether it is time to read them again."""
        return time.monotonic() - self._read >= FRESH

    def read(self) -> None:
        """Read them again. If the store cannot be read, this raises, and nobody is let in."""
        if self._store is not None:
            self._known = self._store.tokens()
        self._read = time.monotonic()

    @property
    def wanted(self) -> bool:
        """Whether whoever asks needs one: from the first that was ever made, revoked or not."""
        return bool(self._known)

    def holder(self, text: str) -> Token | None:
        """The token with that text, if it still allows anything."""
        return holder(text, self._known)
