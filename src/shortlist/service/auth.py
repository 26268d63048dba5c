"""Access control: tokens, their scopes, logins, the rate limit, and requests from pages of other
sites.

Tokens are made and revoked on the command line. A store keeps their digests, which are compared
in constant time. While a store has no token, only this machine may call the service.

A browser that signs in with a token gets a login of its own: a cookie that ends after some hours,
allows reading only, and is worth nothing once the token is revoked or has expired."""

import hmac
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network, ip_address
from urllib.parse import urlsplit

from starlette.requests import Request

from shortlist.errors import InvalidInput, LimitExceeded, NotAllowed
from shortlist.service.replies import Refusal
from shortlist.stores.base import Scope, Token, TokenStore

PREFIX = "shortlist_"  # makes a leaked token recognisable
BYTES = 32  # of randomness: too many to guess, so one plain SHA-256 is enough
FRESH = 0.5  # seconds until tokens are read again; a revoked one may work that long
LONGEST = 200  # characters of a name or a token
CALLERS = 10_000  # whose rate is remembered
COOKIE = "shortlist_login"  # of the live page: read only
LOGIN = 12 * 3600  # seconds that a browser stays signed in
SHORT_DIGEST = 16  # characters of a token's digest in its logins
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SAFE = ("GET", "HEAD")
MISSING = "a token is required, and none was sent"
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
Network = IPv4Network | IPv6Network


def make_token(
    store: TokenStore,
    name: str,
    scope: Scope,
    now: float,
    *,
    expires: float | None = None,
    experiment: str | None = None,
) -> str:
    """Add a token to a store and return its secret, which is stored nowhere."""
    if not (name.strip() and len(name) <= LONGEST and name.isprintable()):
        rule = f"must be 1 to {LONGEST} printable characters"
        raise InvalidInput(f"the name of the token is {name!r}, but {rule}")
    secret = PREFIX + secrets.token_urlsafe(BYTES)
    token = Token(name, scope, digest(secret), now, expires=expires, experiment=experiment)
    store.add_token(token)
    return secret


def digest(secret: str) -> str:
    """Return the SHA-256 of a secret, in hexadecimal."""
    return sha256(secret.encode(errors="replace")).hexdigest()


def find_token(secret: str, tokens: Sequence[Token]) -> Token | None:
    """Return the token with this secret, whether or not it is still valid.

    All are compared, each in constant time, so the duration reveals nothing."""
    given = digest(secret[:LONGEST])
    found = [token for token in tokens if hmac.compare_digest(token.digest, given)]
    return found[0] if found else None


def invalidity(token: Token, now: float) -> str:
    """Why a token allows nothing any more; empty if it does."""
    if token.revoked is not None:
        return f"the token {token.name!r} was revoked"
    if token.expires is not None and token.expires <= now:
        day = time.strftime("%Y-%m-%d", time.gmtime(token.expires))
        return f"the token {token.name!r} expired on {day}"
    return ""


def login_of(token: Token, now: float) -> tuple[str, int]:
    """The login of a browser for a token, and for how many seconds it is valid."""
    seconds = LOGIN if token.expires is None else min(LOGIN, int(token.expires - now))
    end = int(now) + seconds
    return f"{end}.{token.digest[:SHORT_DIGEST]}.{_signature(token, end)}", seconds


def find_login(login: str, tokens: Sequence[Token], now: float) -> Token | None:
    """The token of a login, with read access only; None if the login has ended or is forged."""
    end, _, rest = login[:LONGEST].partition(".")
    short, _, signature = rest.partition(".")
    if not (end.isascii() and end.isdecimal() and int(end) > now):
        return None
    for token in tokens:
        if token.digest[:SHORT_DIGEST] == short:
            expected = _signature(token, int(end)).encode()
            if hmac.compare_digest(expected, signature.encode()):
                return token._replace(scope=Scope.READ)
    return None


def _signature(token: Token, end: int) -> str:
    return hmac.new(token.digest.encode(), b"login until %d" % end, sha256).hexdigest()


class Tokens:
    """The tokens of a store, read again all the time."""

    def __init__(self, store: object) -> None:
        self._store = store if isinstance(store, TokenStore) else None
        self.all: Sequence[Token] = ()
        self._read = -FRESH

    @property
    def stale(self) -> bool:
        """Whether it is time to read them again."""
        return time.monotonic() - self._read >= FRESH

    def read(self) -> None:
        """Read them again. If the store cannot be read, this raises, and no request passes."""
        if self._store is not None:
            self.all = self._store.tokens()
        self._read = time.monotonic()

    @property
    def known(self) -> bool:
        """Whether they were ever read."""
        return self._read >= 0

    @property
    def required(self) -> bool:
        """Whether callers need one: once a first one was made, even if it is revoked."""
        return bool(self.all)

    def is_valid(self, token: Token | None) -> bool:
        """Whether a caller with this token may continue."""
        if token is None:
            return not self.required
        now = time.time()
        return any(each.digest == token.digest and not invalidity(each, now) for each in self.all)


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


class Proxies:
    """Who a request comes from. Headers of proxies count only from configured proxies."""

    def __init__(self, networks: Sequence[Network] = ()) -> None:
        self._networks = networks

    def address(self, request: Request) -> str:
        """The address that a request comes from."""
        own = request.client.host if request.client else ""
        if not self._trusts(own):
            return own
        hops = request.headers.get("x-forwarded-for", "").split(",")
        callers = [hop.strip() for hop in hops if hop.strip() and not self._trusts(hop.strip())]
        return callers[-1] if callers else own

    def is_secure(self, request: Request) -> bool:
        """Whether the caller uses TLS."""
        own = request.client.host if request.client else ""
        said = request.headers.get("x-forwarded-proto", "") if self._trusts(own) else ""
        return (said or request.url.scheme) == "https"

    def _trusts(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


class InFlight:
    """How many requests of every address are under way; live pages count."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count: Counter[str] = Counter()

    @contextmanager
    def one(self, address: str) -> Iterator[None]:
        """A block in which one more is under way, if that is allowed."""
        if self._count[address] >= self._most:
            raise LimitExceeded(
                f"{self._most:,} requests from {address} are under way, the maximum per address"
            )
        self._count[address] += 1
        try:
            yield
        finally:
            self._count[address] -= 1
            if not self._count[address]:
                del self._count[address]


@dataclass(frozen=True, slots=True)
class Auth:
    """The checks before a request is handled."""

    tokens: Tokens
    rate: RateLimit
    origins: tuple[str, ...]  # other sites whose pages may call the service
    proxies: Proxies = field(default_factory=Proxies)

    def check(self, request: Request, scope: Scope, experiment: str | None) -> Token | None:
        """Refuse a request that may not do what takes this scope; return its token.

        `experiment` is the name of the experiment it is about; empty if it is about all or none,
        None if every token is allowed."""
        self.check_origin(request)
        if not self.tokens.required:
            self.rate.take(self.proxies.address(request))
            _check_local(request)
            return None
        token = self._token(request)
        self.rate.take(f"token {token.name}")
        if not token.scope.covers(scope):
            raise NotAllowed(
                f"the scope of token {token.name!r} is {token.scope}, but must be {scope}"
            )
        if experiment is not None and token.experiment not in (None, experiment):
            raise NotAllowed(
                f"the token {token.name!r} is for experiment {token.experiment!r} only"
            )
        return token

    def _token(self, request: Request) -> Token:
        """The token of a request, if it is valid."""
        token, missing = self._found(request)
        reason = missing if token is None else invalidity(token, time.time())
        if token is None or reason:
            self.rate.take(self.proxies.address(request))
            raise Refusal(HTTPStatus.UNAUTHORIZED, reason, www_authenticate="Bearer")
        return token

    def _found(self, request: Request) -> tuple[Token | None, str]:
        """The token of a request, or why there is none. A cookie gives read access only: a browser
        sends it with requests that other sites cause."""
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            token = find_token(secret.strip(), self.tokens.all)
            return token, "the token is wrong: copy it again from `shortlist tokens create`"
        login = request.cookies.get(COOKIE)
        if request.method in SAFE and login:
            token = find_login(login, self.tokens.all, time.time())
            return token, "the login has ended: sign in again"
        return None, MISSING

    def sign_in(self, request: Request, secret: str) -> tuple[str, int]:
        """The login for a token, and for how many seconds it is valid."""
        self.check_origin(request)
        self.rate.take(self.proxies.address(request))
        token = find_token(secret, self.tokens.all)
        wrong = "the token is wrong: paste the whole token, or ask for a new one"
        now = time.time()
        reason = wrong if token is None else invalidity(token, now)
        if token is None or reason:
            raise Refusal(HTTPStatus.UNAUTHORIZED, reason)
        return login_of(token, now)

    def check_origin(self, request: Request) -> None:
        """Refuse writes from pages of other sites."""
        origin = request.headers.get("origin")
        if origin is None or request.method in SAFE or origin in self.origins:
            return
        if urlsplit(origin).netloc != request.headers.get("host"):
            raise Refusal(
                HTTPStatus.FORBIDDEN, f"the origin is {origin[:100]!r}, which is not allowed"
            )


def _check_local(request: Request) -> None:
    """While there are no tokens, refuse host names other than this machine's (DNS rebinding) and
    requests that a proxy forwards."""
    for name in FORWARDED:
        if name in request.headers:
            raise Refusal(
                HTTPStatus.FORBIDDEN,
                f"the request was forwarded ({name}), but without tokens must come from this"
                " machine: make a token with `shortlist tokens create`",
            )
    host = request.headers.get("host", "")
    try:
        hostname = urlsplit(f"//{host}").hostname
    except ValueError:
        hostname = None
    if hostname not in LOOPBACK:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            f"the host is {host[:100]!r}, but without tokens must be this machine: make a"
            " token with `shortlist tokens create`",
        )
