"""Who is let in: by a token, or on this machine alone as long as no token was ever made."""

from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import Request

from shortlist.errors import NotAllowed
from shortlist.service.limits import Pace
from shortlist.service.replies import Refusal
from shortlist.service.tokens import Tokens
from shortlist.storage.tokens import Scope, Token

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
