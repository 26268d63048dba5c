"""Tokens that end, tokens of one experiment, logins, proxies, and authors in the log."""

import time
from collections.abc import Iterator
from ipaddress import ip_network
from threading import Thread
from typing import Any

import pytest
from services import GENEROUS, MAKE, Call, caller, port_of, serving
from sockets import STREAM_OF, connected, read_events
from starlette.requests import Request

from shortlist import Client
from shortlist.engine import Experiment, copy
from shortlist.engine.log_entries import written_by
from shortlist.errors import InvalidInput, LimitExceeded
from shortlist.service.app import application
from shortlist.service.auth import FRESH, InFlight, Proxies, find_login, login_of, make_token
from shortlist.service.replies import Limits
from shortlist.service.server import server
from shortlist.stores import Kind
from shortlist.stores.base import MemoryStore, Scope, Token

FORM = {"content_type": "application/x-www-form-urlencoded"}
A, B = "/v1/experiments/a", "/v1/experiments/b"


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for name in ("a", "b", "secret"):
        Experiment.create(3, 1, store=store, name=name, budget=30, algorithm="uniform")
    return store


@pytest.fixture
def secret(store: MemoryStore) -> str:
    return make_token(store, "ann", Scope.ADMIN, 0.0, experiment="a")


@pytest.fixture
def call(store: MemoryStore, secret: str) -> Iterator[Call]:
    with serving(store) as url:
        yield caller(url)


GETS = ["", "/status", "/standing", "/result", "/result?partial=true", "/export"]
POSTS: dict[str, Any] = {
    "/ask": {"worker": "w"},
    "/tell": {"results": [{"ticket": 0, "reward": 0.5}]},
    "/fail": {"ticket": 0, "reason": "x"},
    "/release": {"worker": "w"},
    "/retire": {"arm": 0},
    "/resume": {},
}
PAGES = ["/experiments/b", "/experiments/b/stream", "/experiments/b/arms.csv"]


def test_a_token_of_one_experiment_sees_nothing_of_another(call: Call, secret: str) -> None:
    sent = {"authorization": f"Bearer {secret}"}
    replies = [call("GET", f"{B}{path}", **sent) for path in GETS]
    replies += [call("POST", f"{B}{path}", body, **sent) for path, body in POSTS.items()]
    replies += [call("GET", path, **sent) for path in (*PAGES, "/metrics")]
    replies += [call(method, B, **sent) for method in ("PUT", "DELETE", "OPTIONS", "PATCH")]
    replies += [call("POST", "/v1/experiments", {**MAKE, "name": "c"}, **sent)]
    replies += [call("GET", "/v1/experiments/nowhere", **sent)]
    assert {reply.status for reply in replies} == {403}
    assert {reply.error[1] for reply in replies} == {"the token 'ann' is for experiment 'a' only"}


def test_a_token_of_one_experiment_works_on_that_one(call: Call, secret: str) -> None:
    sent = {"authorization": f"Bearer {secret}"}
    for path in ("", "/status", "/standing", "/result?partial=true", "/export"):
        reply = call("GET", f"{A}{path}", **sent)
        assert reply.status == 200
        assert b"secret" not in reply.raw
    for path, body in POSTS.items():
        assert call("POST", f"{A}{path}", body, **sent).status == 200, path
    listed = call("GET", "/v1/experiments", **sent).data
    assert ([row["name"] for row in listed["experiments"]], listed["total"]) == (["a"], 1)
    page = call("GET", "/", **sent).raw
    assert b"experiments/a" in page
    assert b"secret" not in page
    assert call("GET", "/openapi.json", **sent).status == 200


def test_an_experiment_that_does_not_exist_names_no_others(store: MemoryStore) -> None:
    secret = make_token(store, "ann", Scope.ADMIN, 0.0, experiment="gone")
    with serving(store) as url:
        sent = {"authorization": f"Bearer {secret}"}
        reply = caller(url)("GET", "/v1/experiments/gone/status", **sent)
    assert reply.error == ("StoreMissing", "there is no experiment 'gone'")


def test_missing_wrong_revoked_and_expired_tokens_are_told_apart(store: MemoryStore) -> None:
    revoked, expired = (
        make_token(store, name, Scope.READ, 0.0, expires=expires)
        for name, expires in (("ann", None), ("ben", 86400.0))
    )
    store.revoke_token("ann", 1.0)
    with serving(store) as url:
        call = caller(url)
        replies = [
            call("GET", "/v1/experiments", **({"authorization": f"Bearer {each}"} if each else {}))
            for each in ("", "wrong", revoked, expired)
        ]
    assert {(reply.status, reply.error[0]) for reply in replies} == {(401, "NotAllowed")}
    assert [reply.error[1] for reply in replies] == [
        "a token is required, and none was sent",
        "the token is wrong: copy it again from `shortlist tokens create`",
        "the token 'ann' was revoked",
        "the token 'ben' expired on 1970-01-02",
    ]


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_the_stream_of_a_token_that_ends_ends_within_a_second(store: MemoryStore, how: str) -> None:
    with serving(store, time.time) as url, connected(url) as reader:
        ends = time.time() + 3.0 if how == "expired" else None
        secret = make_token(store, "ann", Scope.READ, 0.0, expires=ends)
        time.sleep(FRESH + 0.05)  # until the token is known
        reader.sendall(STREAM_OF % (b"a", secret.encode()))
        read_events(reader, "parts")
        if how == "revoked":
            ends = time.time()
            store.revoke_token("ann", ends)
        rest = b""
        while not rest.endswith(b"0\r\n\r\n"):
            rest += reader.recv(1 << 16)
        assert ends is not None
        assert -0.1 < time.time() - ends < 30.0  # a second, where the machine is not busy


def signed_in(call: Call, secret: str, **headers: str) -> str:
    reply = call("POST", "/sign-in", f"token={secret}".encode(), **FORM, **headers)
    assert reply.status == 303, reply.raw
    return str(reply.headers["set-cookie"])


def test_a_login_is_not_the_token_and_ends_with_it(store: MemoryStore) -> None:
    secret = make_token(store, "ann", Scope.ADMIN, 0.0)
    with serving(store) as url:
        call = caller(url)
        cookie = signed_in(call, secret)
        assert secret not in cookie
        assert "Max-Age=43200" in cookie
        kept = {"cookie": cookie.partition(";")[0]}
        assert call("GET", "/", **kept).status == 200
        assert call("POST", f"{A}/ask", {}, **kept).status == 401
        store.revoke_token("ann", time.time())
        time.sleep(FRESH + 0.05)
        assert call("GET", "/", **kept).error[1] == "the token 'ann' was revoked"


def test_a_login_ends_with_its_time_or_that_of_its_token_and_cannot_be_changed() -> None:
    store = MemoryStore()
    make_token(store, "ann", Scope.ADMIN, 0.0)
    make_token(store, "ben", Scope.ADMIN, 0.0, expires=1100.0)
    ann, ben = store.tokens()
    login, seconds = login_of(ann, 1000.0)
    assert seconds == 43200
    assert login_of(ben, 1000.0)[1] == 100
    both: list[Token] = [ann, ben]
    assert find_login(login, both, 1000.0) == ann._replace(scope=Scope.READ)
    assert find_login(login, both, 1000.0 + 43200) is None
    end, short, signature = login.split(".")
    forged = [
        f"{int(end) + 1}.{short}.{signature}",
        f"{end}.{ben.digest[:16]}.{signature}",
        f"{end}.{short}.{'0' * 64}",
        f"{end}.{short}",
        f"٣.{short}.{signature}",
        "",
        "é.é.é",
    ]
    assert [find_login(each, both, 1000.0) for each in forged] == [None] * len(forged)


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
def test_a_page_of_another_site_signs_nobody_in_or_out(call: Call, secret: str, path: str) -> None:
    body = f"token={secret}".encode()
    reply = call("POST", path, body, origin="https://evil.example", **FORM)
    assert (reply.status, reply.headers["set-cookie"]) == (403, None)


def test_forwarded_headers_count_from_configured_proxies_only(store: MemoryStore) -> None:
    secret = make_token(store, "ann", Scope.READ, 0.0)
    for proxies, secure in (((), False), ((ip_network("127.0.0.0/8"),), True)):
        app = application(store, limits=GENEROUS, proxies=proxies, prefix="/tests")
        listening = server(app, "127.0.0.1", 0, GENEROUS)
        thread = Thread(target=listening.run)
        thread.start()
        call = caller(f"http://127.0.0.1:{port_of(listening)}")
        cookie = signed_in(call, secret, x_forwarded_proto="https")
        listening.end()
        thread.join(60)
        assert ("Secure" in cookie) is secure
        assert "Path=/tests/" in cookie


def test_the_caller_behind_proxies_is_the_last_one_that_is_no_proxy() -> None:
    proxies = Proxies([ip_network("10.0.0.0/8")])

    def request(client: str, forwarded: str) -> Request:
        headers = [(b"x-forwarded-for", forwarded.encode())]
        return Request({"type": "http", "client": (client, 1), "headers": headers})

    assert proxies.address(request("10.0.0.1", "6.6.6.6, 7.7.7.7, 10.2.2.2")) == "7.7.7.7"
    assert proxies.address(request("10.0.0.1", "")) == "10.0.0.1"
    assert proxies.address(request("8.8.8.8", "6.6.6.6")) == "8.8.8.8"


def test_a_prefix_may_be_removed_by_the_proxy_or_by_the_service(store: MemoryStore) -> None:
    app = application(store, limits=GENEROUS, prefix="/tests")
    listening = server(app, "127.0.0.1", 0, GENEROUS)
    thread = Thread(target=listening.run)
    thread.start()
    call = caller(f"http://127.0.0.1:{port_of(listening)}")
    assert call("GET", "/live").status == call("GET", "/tests/live").status == 200
    page = call("GET", "/tests/nowhere", accept="text/html")
    assert b'href="/tests/static/page.css"' in page.raw
    listening.end()
    thread.join(60)


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip"])
def test_without_tokens_forwarded_requests_are_refused(header: str) -> None:
    with serving(MemoryStore()) as url:
        reply = caller(url)("GET", "/v1/experiments", **{header.replace("-", "_"): "127.0.0.1"})
    assert reply.status == 403
    assert "without tokens must come from this machine" in reply.error[1]


def test_an_address_has_a_limited_number_of_requests_under_way() -> None:
    in_flight = InFlight(2)
    refused = pytest.raises(LimitExceeded, match="2 requests from a are under way")
    with in_flight.one("a"), in_flight.one("a"), in_flight.one("b"), refused, in_flight.one("a"):
        pass
    with in_flight.one("a"):
        pass
    with serving(MemoryStore(), limits=Limits(per_address=0)) as url:
        assert caller(url)("GET", "/live").status == 429


def test_every_write_in_the_log_names_its_author(store: MemoryStore) -> None:
    secrets = {name: make_token(store, name, Scope.ADMIN, 0.0) for name in ("ann", "ben")}
    with serving(store) as url:
        ann, ben = (Client(url, secrets[name], name="a") for name in ("ann", "ben"))
        tickets = ann.ask(4, "w")
        ann.tell_many([(tickets[0], 0.5), (tickets[1], 0.5)])
        ben.tell(tickets[3], 0.5)
        ben.fail(tickets[2], "no network")
        ann.release("w")
        ben.retire(2, "sold out")
        ann.resume()
        made = ann.create(3, 1, name="new", budget=30)
        made.ask(1)
        page = caller(url)("GET", "/experiments/a", authorization=f"Bearer {secrets['ann']}")
    events = store.read("a").events
    assert {event.author for event in events} == {"ann", "ben"}
    told = [event for event in events if event.kind is Kind.AUTHOR]
    assert [(each.author, each.ticket, each.span) for each in told[:2]] == [
        ("ann", 0, 2),
        ("ben", 3, 1),
    ]
    (failed,) = (event for event in events if event.kind is Kind.FAIL)
    assert failed.author == "ben"
    assert b"2 was retired: sold out (by ben)" in page.raw
    assert {event.author for event in store.read("new").events} == {"ann"}


def test_authors_survive_a_copy_and_tokens_must_have_printable_names(store: MemoryStore) -> None:
    experiment = Experiment.open(store, "a")
    with written_by("ann"):
        tickets = experiment.ask(5)
        experiment.tell_many((ticket, 0.5) for ticket in tickets)
    target = MemoryStore()
    copy(store, target, "a")
    assert {event.author for event in target.read("a").events} == {"ann"}
    with pytest.raises(InvalidInput, match="printable"):
        make_token(store, "a\0b", Scope.READ, 0.0)
