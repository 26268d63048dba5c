"""The tokens of a service as a store keeps them: who may do what, and never the secret itself.

A token is made once and may be revoked; nothing else about it changes, and it is never removed:
a store that ever had a token is never open to those without one."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable


class Scope(StrEnum):
    """What a token allows; each allows what those before it do."""

    READ = "read"  # look at experiments and take their results
    WORK = "work"  # be handed tickets and tell them
    ADMIN = "admin"  # make experiments and let stopped ones go on

    def covers(self, wanted: "Scope") -> bool:
        """Whether this allows all that `wanted` does."""
        scopes = list(Scope)
        return scopes.index(self) >= scopes.index(wanted)


class Token(NamedTuple):
    """A token without its secret."""

    name: str  # of its holder; no two have the same, revoked ones included
    scope: Scope
    digest: str  # SHA-256 of the secret, in hexadecimal
    created: float  # seconds since 1970
    revoked: float | None = None


@runtime_checkable
class TokenStore(Protocol):
    """A store that keeps tokens beside its experiments. It raises `StoreError` as any store."""

    def tokens(self) -> Sequence[Token]:
        """All that were ever made, in that order, revoked ones included."""

    def add_token(self, token: Token) -> None:
        """Add one, unless there was ever one of that name."""

    def revoke_token(self, name: str, now: float) -> None:
        """Let a token allow nothing any more; a second time changes nothing."""


def token_exists(name: str, where: str) -> str:
    """The words for a name that is taken."""
    return f"there is a token {name!r} in {where} already, and a revoked one keeps its name"


def no_such_token(name: str, tokens: Sequence[Token], where: str) -> str:
    """The words for a name that is not there."""
    there = ", ".join(repr(token.name) for token in tokens) or "none"
    return f"there is no token {name!r} in {where}; it holds {there}"
