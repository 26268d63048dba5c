"""Tokens: made and revoked on the command line, kept as digests, compared in constant time.

Who is let in: by a token, or on this machine alone as long as no token was ever made."""

import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import Request

from shortlist.errors import InvalidInput, NotAllowed
from shortlist.service.limits import Pace
from shortlist.service.replies import Refusal
from shortlist.stores.base import Scope, Token, TokenStore

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


COOKIE = "shortlist_token"  # of the live page: it lets a browser look, and do nothing else
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SAFE = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Gate:
    """The checks before a request is looked at."""

    tokens: Tokens
    pace: Pace
    origins: tuple[str, ...]  # other sites whose pages may call, which is nobody unless asked for

    def admit(self, request: Request, wanted: Scope) -> None:
        """Let a request in, or say why not."""
        self._check_origin(request)
        address = request.client.host if request.client else ""
        if not self.tokens.wanted:
            self.pace.take(address)
            _check_local(request)
            return
        token = self.holder(request)
        self.pace.take(address if token is None else f"token {token.name}")
        if token is None:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                "missing or invalid token",
                www_authenticate="Bearer",
            )
        if not token.scope.covers(wanted):
            raise NotAllowed(
                f"the token {token.name!r} allows to {token.scope}, but this takes one for {wanted}"
            )

    def holder(self, request: Request) -> Token | None:
        """The token that came with a request.

        A cookie is sent by the browser whoever made it ask, so it counts only to look."""
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.tokens.holder(text.strip())
        if request.method in SAFE and (kept := request.cookies.get(COOKIE)):
            token = self.tokens.holder(kept)
            return None if token is None else token._replace(scope=Scope.READ)
        return None

    def _check_origin(self, request: Request) -> None:
        """Refuse what the page of another site makes a browser do."""
        origin = request.headers.get("origin")
        if origin is None or request.method in SAFE or origin in self.origins:
            return
        if urlsplit(origin).netloc != request.headers.get("host"):
            raise Refusal(HTTPStatus.FORBIDDEN, f"pages of {origin[:100]!r} may not call this")


def _check_local(request: Request) -> None:
    """Without tokens only this machine is served, and under no other name.

    A page elsewhere whose name was made to lead here would otherwise be let in."""
    host = request.headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        name = None
    if name not in LOOPBACK:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            f"the service was called {host[:100]!r}, but without tokens it is for this machine:"
            " `shortlist tokens create` makes one",
        )
