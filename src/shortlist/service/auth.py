"""Access control: tokens, their scopes, the rate limit, and requests from pages of other sites.

Tokens are made and revoked on the command line. A store keeps their digests, which are compared
in constant time. While a store has no token, only this machine may call the service."""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import Request

from shortlist.errors import InvalidInput, LimitExceeded, NotAllowed
from shortlist.service.protocol import Refusal
from shortlist.stores.base import Scope, Token, TokenStore

PREFIX = "shortlist_"  # makes a leaked token recognisable
BYTES = 32  # of randomness: too many to guess, so one plain SHA-256 is enough
FRESH = 1.0  # seconds until tokens are read again; a revoked one may work that long
LONGEST = 200  # characters of a name or a token
CALLERS = 10_000  # whose rate is remembered
COOKIE = "shortlist_token"  # of the live page: read only
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SAFE = ("GET", "HEAD")


def make_token(store: TokenStore, name: str, scope: Scope, now: float) -> str:
    """Add a token to a store and return its secret, which is stored nowhere."""
    if not (name.strip() and len(name) <= LONGEST and name.isprintable()):
        rule = f"must be 1 to {LONGEST} printable characters"
        raise InvalidInput(f"the name of the token is {name!r}, but {rule}")
    secret = PREFIX + secrets.token_urlsafe(BYTES)
    store.add_token(Token(name, scope, digest(secret), now))
    return secret


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret, in hexadecimal."""
    return sha256(secret.encode(errors="replace")).hexdigest()


def find_token(secret: str, tokens: Sequence[Token]) -> Token | None:
    """Return the token with this secret, unless it is revoked.

    All are compared, each in constant time, so the duration reveals nothing."""
    given = digest(secret[:LONGEST])
    found = [token for token in tokens if hmac.compare_digest(token.digest, given)]
    return next((token for token in found if token.revoked is None), None)


class Tokens:
    """The tokens of a store, read again every second."""

    def __init__(self, store: object) -> None:
        self._store = store if isinstance(store, TokenStore) else None
        self._tokens: Sequence[Token] = ()
        self._read = -FRESH

    @property
    def stale(self) -> bool:
        """Whether it is time to read them again."""
        return time.monotonic() - self._read >= FRESH

    def read(self) -> None:
        """Read them again. If the store cannot be read, this raises, and no request passes."""
        if self._store is not None:
            self._tokens = self._store.tokens()
        self._read = time.monotonic()

    @property
    def required(self) -> bool:
        """Whether callers need one: once a first one was made, even if it is revoked."""
        return bool(self._tokens)

    def find(self, secret: str) -> Token | None:
        """Return the token with this secret, unless it is revoked."""
        return find_token(secret, self._tokens)


class RateLimit:
    """One token bucket per caller: `rate` requests per second, twice that in a burst."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, as of when

    def take(self, caller: str) -> None:
        """Count a request, or refuse it."""
        now = time.monotonic()
        full = 2 * self._rate
        left, then = self._buckets.pop(caller, (full, now))
        left = min(full, left + (now - then) * self._rate)
        self._buckets[caller] = (max(0.0, left - 1), now)
        if len(self._buckets) > CALLERS:
            self._buckets.popitem(last=False)
        if left < 1:
            raise LimitExceeded(f"more than {self._rate:g} requests per second: wait a second")


@dataclass(frozen=True, slots=True)
class Auth:
    """The checks before a request is handled."""

    tokens: Tokens
    rate: RateLimit
    origins: tuple[str, ...]  # other sites whose pages may call the service

    def check(self, request: Request, scope: Scope) -> None:
        """Refuse a request that may not do what takes this scope."""
        self._check_origin(request)
        if not self.tokens.required:
            self.rate.take(address(request))
            _check_local(request)
            return
        token = self._token(request)
        self.rate.take(address(request) if token is None else f"token {token.name}")
        if token is None:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED, "missing or invalid token", www_authenticate="Bearer"
            )
        if not token.scope.covers(scope):
            raise NotAllowed(
                f"the scope of token {token.name!r} is {token.scope}, but must be {scope}"
            )

    def _token(self, request: Request) -> Token | None:
        """The token of a request. A cookie gives read access only: a browser sends it with
        requests that other sites cause."""
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self.tokens.find(secret.strip())
        if request.method in SAFE and (cookie := request.cookies.get(COOKIE)):
            token = self.tokens.find(cookie)
            return None if token is None else token._replace(scope=Scope.READ)
        return None

    def _check_origin(self, request: Request) -> None:
        """Refuse writes from pages of other sites."""
        origin = request.headers.get("origin")
        if origin is None or request.method in SAFE or origin in self.origins:
            return
        if urlsplit(origin).netloc != request.headers.get("host"):
            raise Refusal(
                HTTPStatus.FORBIDDEN, f"the origin is {origin[:100]!r}, which is not allowed"
            )


def address(request: Request) -> str:
    """The address that a request comes from."""
    return request.client.host if request.client else ""


def _check_local(request: Request) -> None:
    """Refuse host names other than this machine's (DNS rebinding) while there are no tokens."""
    host = request.headers.get("host", "")
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        name = None
    if name not in LOOPBACK:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            f"the host is {host[:100]!r}, but without tokens must be this machine: make a"
            " token with `shortlist tokens create`",
        )
