"""Who may do what: with which token, from where, and from which page."""

import hmac
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest
from services import MAKE, Call, caller, serving

from shortlist import Client
from shortlist.errors import NotAllowed
from shortlist.service.auth import FRESH, make_token
from shortlist.service.replies import Limits
from shortlist.service.server import check_host
from shortlist.stores.base import MemoryStore, Scope

pytest_plugins = ["service_fixtures"]

ONE = "/v1/experiments/experiment"
READ = [
    "/",
    "/metrics",
    "/openapi.json",
    "/v1/experiments",
    ONE,
    f"{ONE}/status",
    f"{ONE}/standing",
    f"{ONE}/export",
    "/experiments/experiment",
    "/experiments/experiment/arms.csv",
]
WORK = {
    "ask": {},
    "tell": {"results": []},
    "fail": {"ticket": 0, "reason": "x"},
    "release": {"worker": "w"},
}
ADMIN = {ONE + "/resume": {}, "/v1/experiments": {**MAKE, "exist_ok": True}}


@pytest.fixture
def tokens(store: MemoryStore) -> dict[Scope, str]:
    """A token of every scope."""
    return {scope: make_token(store, f"the {scope}", scope, 0.0) for scope in Scope}


@pytest.fixture
def guarded(store: MemoryStore, tokens: dict[Scope, str]) -> Iterator[Call]:
    with serving(store) as url:
        call = caller(url)
        admin = f"Bearer {tokens[Scope.ADMIN]}"
        assert call("POST", "/v1/experiments", MAKE, authorization=admin).status == 201
        assert call("POST", f"{ONE}/ask", {}, authorization=admin).status == 200
        yield call


@pytest.mark.parametrize(
    "credentials",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": "Basic dTpw"},
        {"cookie": "shortlist_login=wrong"},
    ],
)
def test_without_a_token_nothing_but_health_answers(
    guarded: Call, credentials: dict[str, str]
) -> None:
    assert guarded("GET", "/ready", **credentials).status == 200
    paths = [*READ, "/nowhere", "/experiments/experiment/stream", "/v1/experiments/none/status"]
    replies = [guarded("GET", path, **credentials) for path in paths]
    replies += [
        guarded("POST", f"{ONE}/{what}", body, **credentials) for what, body in WORK.items()
    ]
    replies += [guarded("POST", path, body, **credentials) for path, body in ADMIN.items()]
    replies += [guarded(method, ONE, **credentials) for method in ("PUT", "DELETE", "OPTIONS")]
    assert {reply.status for reply in replies} == {401}
    assert {reply.error[0] for reply in replies} == {"NotAllowed"}
    assert {reply.headers["www-authenticate"] for reply in replies} == {"Bearer"}


@pytest.mark.parametrize("scope", list(Scope))
def test_a_token_allows_what_its_scope_says_and_no_more(
    guarded: Call, tokens: dict[Scope, str], scope: Scope
) -> None:
    sent = {"authorization": f"Bearer {tokens[scope]}"}
    assert {guarded("GET", path, **sent).status for path in READ} == {200}
    worked = {guarded("POST", f"{ONE}/{what}", body, **sent).status for what, body in WORK.items()}
    assert worked == {403 if scope is Scope.READ else 200}
    made = {guarded("POST", path, body, **sent).status for path, body in ADMIN.items()}
    assert made == {200 if scope is Scope.ADMIN else 403}


def test_a_refusal_says_what_the_token_allows_and_what_is_needed(
    guarded: Call, tokens: dict[Scope, str]
) -> None:
    reply = guarded("POST", f"{ONE}/ask", {}, authorization=f"Bearer {tokens[Scope.READ]}")
    words = "the scope of token 'the read' is read, but must be work"
    assert reply.error == ("NotAllowed", words)


def test_a_revoked_token_allows_nothing_within_a_second(
    guarded: Call, store: MemoryStore, tokens: dict[Scope, str]
) -> None:
    sent = {"authorization": f"Bearer {tokens[Scope.ADMIN]}"}
    assert guarded("GET", ONE, **sent).status == 200
    store.revoke_token("the admin", 1.0)
    time.sleep(FRESH + 0.05)
    assert guarded("GET", ONE, **sent).status == 401


def test_a_store_that_ever_had_a_token_is_never_open_again(store: MemoryStore) -> None:
    make_token(store, "only", Scope.ADMIN, 0.0)
    store.revoke_token("only", 1.0)
    with serving(store) as url:
        assert caller(url)("GET", "/v1/experiments").status == 401
    check_host("0.0.0.0", store)  # it may listen anywhere, for nobody is let in


def test_tokens_that_are_made_while_the_service_runs_count(store: MemoryStore, call: Call) -> None:
    assert call("GET", "/v1/experiments").status == 200
    make_token(store, "first", Scope.READ, 0.0)
    time.sleep(FRESH + 0.05)
    assert call("GET", "/v1/experiments").status == 401


def test_only_digests_are_kept(store: MemoryStore, tokens: dict[Scope, str]) -> None:
    kept = repr(store.tokens())
    assert not any(text in kept or text[-20:] in kept for text in tokens.values())
    assert len({token.digest for token in store.tokens()}) == len(Scope)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org", ""])
def test_without_tokens_only_this_machine_is_listened_to(host: str) -> None:
    with pytest.raises(NotAllowed, match="without tokens must be a loopback address"):
        check_host(host, MemoryStore())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_no_tokens(host: str) -> None:
    check_host(host, MemoryStore())


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "["]
)
def test_without_tokens_the_service_answers_to_no_other_name(made: Call, host: str) -> None:
    """A page of another site cannot make its own name lead here."""
    assert made("GET", f"{ONE}/status", host=host).status == 403
    assert made("GET", f"{ONE}/status", host="localhost:1").status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_the_page_of_another_site_cannot_write(made: Call, origin: str) -> None:
    assert made("POST", f"{ONE}/ask", {}, origin=origin).status == 403
    assert made("GET", f"{ONE}/standing").data["held"] == 0


def test_the_page_that_asks_for_a_token_has_its_style(guarded: Call) -> None:
    page = guarded("GET", "/", accept="text/html").raw
    assert b'href="/static/page.css"' in page
    assert guarded("GET", "/static/page.css").status == 200
    wrong = guarded(
        "POST",
        "/sign-in",
        b"token=wrong",
        accept="text/html",
        content_type="application/x-www-form-urlencoded",
    )
    assert (wrong.status, wrong.headers["www-authenticate"]) == (401, None)
    assert b"The token is wrong" in wrong.raw
    assert b'method="post" action="/sign-in">' in wrong.raw


def test_a_browser_signs_in_and_may_look_and_nothing_else(
    guarded: Call, tokens: dict[Scope, str]
) -> None:
    form = {"content_type": "application/x-www-form-urlencoded"}
    page = guarded("GET", "/", accept="text/html")
    assert (page.status, b'method="post" action="/sign-in">' in page.raw) == (401, True)
    wrong = guarded("POST", "/sign-in", b"token=wrong", **form)
    assert (wrong.status, wrong.headers["set-cookie"]) == (401, None)
    signed = guarded("POST", "/sign-in", f"token={tokens[Scope.ADMIN]}".encode(), **form)
    cookie = str(signed.headers["set-cookie"])
    assert (signed.status, signed.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    kept = {"cookie": cookie.partition(";")[0]}
    assert guarded("GET", "/experiments/experiment", **kept).status == 200
    assert guarded("POST", f"{ONE}/ask", {}, **kept).status == 401
    assert (
        guarded("POST", "/sign-out", b"", **kept)
        .headers["set-cookie"]
        .startswith('shortlist_login=""')
    )
    assert guarded("POST", "/sign-in", b"x" * 5000, **form).status == 413


def test_every_token_is_compared_in_constant_time(
    store: MemoryStore, tokens: dict[Scope, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from shortlist.service import auth as module

    compared: list[Any] = []

    compare = hmac.compare_digest

    def counted(one: str, other: str) -> bool:
        compared.append(one)
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    for text in (*tokens.values(), "wrong", ""):
        compared.clear()
        module.find_token(text, store.tokens())
        assert compared == [token.digest for token in store.tokens()]


def test_timing_does_not_tell_tokens_apart(store: MemoryStore, tokens: dict[Scope, str]) -> None:
    """How long a wrong token takes does not depend on how much of it is right."""
    from shortlist.service.auth import find_token

    right = tokens[Scope.ADMIN]
    guesses = {"near": right[:-1] + "~", "far": "~" * len(right)}
    medians = []
    for _ in range(5):
        times: dict[str, list[float]] = {name: [] for name in guesses}
        for _ in range(400):
            for name, guess in guesses.items():
                begun = time.perf_counter()
                find_token(guess, store.tokens())
                times[name].append(time.perf_counter() - begun)
        medians.append({name: statistics.median(each) for name, each in times.items()})
    ratio = statistics.median(each["near"] / each["far"] for each in medians)
    assert 0.8 < ratio < 1.25


def test_a_client_brings_its_token(store: MemoryStore, tokens: dict[Scope, str]) -> None:
    with serving(store) as url:
        admin = Client(url, tokens[Scope.ADMIN])
        admin.create(3, 1, budget=30)
        assert Client(url, tokens[Scope.WORK]).ask(3)
        with pytest.raises(NotAllowed, match="is read, but must be work"):
            Client(url, tokens[Scope.READ]).ask()
        with pytest.raises(NotAllowed, match=r"none was sent: use Client\(url, token\)"):
            Client(url).status()


def test_a_caller_who_asks_too_often_waits(store: MemoryStore) -> None:
    with serving(store, limits=Limits(rate=1)) as url:
        call = caller(url)
        replies = [call("GET", "/v1/experiments") for _ in range(30)]
        late = [reply for reply in replies if reply.status == 429]
        assert len(late) >= 10
        assert late[0].error == (
            "LimitExceeded",
            "more than 1 requests per second: wait a second",
        )
        assert late[0].headers["retry-after"] == "1"
        assert Client(url).names() == []  # which waits and asks again
