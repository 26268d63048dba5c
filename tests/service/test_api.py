"""The API call by call: what it gives, and in which words it refuses."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from services import MAKE, Call, caller, serving

from shortlist.engine import Experiment, import_lines
from shortlist.service.replies import Limits
from shortlist.stores.base import MemoryStore

pytest_plugins = ["service_fixtures"]

ONE = "/v1/experiments/experiment"


def test_a_whole_experiment_is_made_worked_off_and_answered(made: Call) -> None:
    while (handout := made("POST", f"{ONE}/ask", {"limit": 7}).data)["tickets"]:
        told = [{"ticket": each["id"], "reward": 0.5} for each in handout["tickets"]]
        assert made("POST", f"{ONE}/tell", {"results": told}).data["told"] == len(told)
    assert handout["state"] == "budget"
    result = made("GET", f"{ONE}/result").data
    assert (result["pulls"], len(result["top"])) == (60, 1)
    status = made("GET", f"{ONE}/status").data
    assert (status["state"], status["told"]) == ("budget", 60)
    listed = made("GET", "/v1/experiments").data
    assert (
        listed["experiments"][0] | {"name": "experiment", "pulls": 60} == listed["experiments"][0]
    )


def test_what_is_told_after_its_arm_retired_is_named_and_not_counted_as_told(made: Call) -> None:
    gone, *others = made("POST", f"{ONE}/ask", {"limit": 3}).data["tickets"]
    assert made("POST", f"{ONE}/retire", {"arm": gone["arm"]}).status == 200
    told = {"results": [{"ticket": each["id"], "reward": 1} for each in (gone, *others)]}
    reply = made("POST", f"{ONE}/tell", told).data
    assert reply == {"told": 2, "late": [], "unused": [gone["id"]]}
    status = made("GET", f"{ONE}/status").data
    assert (status["told"], status["unused"], status["spent"]) == (2, 1, 3)


@pytest.mark.parametrize("name", ["a/b", "../x", "a b", "ü%2F", "?x=1#y", "<b>", "."])
def test_a_name_may_hold_anything(call: Call, name: str) -> None:
    assert call("POST", "/v1/experiments", {**MAKE, "name": name}).data["name"] == name
    path = f"/v1/experiments/{quote(name, safe='')}"
    assert call("GET", f"{path}/status").data["name"] == name
    assert call("GET", f"/experiments/{quote(name, safe='')}").status == 200


def test_to_tell_twice_changes_nothing_and_to_tell_otherwise_is_a_conflict(made: Call) -> None:
    made("POST", f"{ONE}/ask", {"limit": 2})
    body = {"results": [{"ticket": 0, "reward": 0.25}, {"ticket": 1, "reward": 1}]}
    assert [made("POST", f"{ONE}/tell", body).status for _ in range(3)] == [200] * 3
    assert made("GET", f"{ONE}/standing").data["told"] == 2
    other = made("POST", f"{ONE}/tell", {"results": [{"ticket": 0, "reward": 0.5}]})
    words = "ticket 0 is told 0.5, but was told 0.25 before, which stays"
    assert (other.status, other.error) == (409, ("ConflictingReward", words))


def test_a_failure_that_is_told_twice_counts_once(made: Call) -> None:
    (ticket,) = made("POST", f"{ONE}/ask", {}).data["tickets"]
    body = {"ticket": ticket["id"], "arm": "a", "expires": ticket["expires"], "reason": "rain"}
    for _ in range(2):
        assert made("POST", f"{ONE}/fail", body).data == {}
        assert made("GET", f"{ONE}/status").data["failures"] == 1
    made("POST", f"{ONE}/ask", {"worker": "another"})
    made("POST", f"{ONE}/fail", body)
    assert made("GET", f"{ONE}/status").data["failures"] == 1


def test_a_worker_gives_back_and_is_handed_again(made: Call) -> None:
    first = made("POST", f"{ONE}/ask", {"limit": 2, "worker": "ann"}).data["tickets"]
    assert made("GET", f"{ONE}/status").data["workers"] == {"ann": 2}
    assert made("POST", f"{ONE}/release", {"worker": "ann"}).data == {"released": 2}
    again = made("POST", f"{ONE}/ask", {"limit": 2, "worker": "ben"}).data["tickets"]
    assert [each["id"] for each in again] == [each["id"] for each in first]


def test_a_stopped_experiment_is_resumed(call: Call) -> None:
    call("POST", "/v1/experiments", {**MAKE, "retries": 0})
    call("POST", f"{ONE}/ask", {})
    call("POST", f"{ONE}/fail", {"ticket": 0, "reason": "rain"})
    assert call("POST", f"{ONE}/ask", {}).data["state"] == "stopped"
    assert call("GET", f"{ONE}/result").error == (
        "Unfinished",
        "ticket 0 failed 1 time, the last time: rain",
    )
    assert call("POST", f"{ONE}/resume", {}).data == {}
    assert len(call("POST", f"{ONE}/ask", {}).data["tickets"]) == 1


def test_a_status_that_is_known_is_not_sent_again(made: Call) -> None:
    first = made("GET", f"{ONE}/status")
    etag = str(first.headers["etag"])
    same = made("GET", f"{ONE}/status", if_none_match=etag)
    assert (same.status, same.raw, same.headers["etag"]) == (304, b"", etag)
    made("POST", f"{ONE}/ask", {})
    changed = made("GET", f"{ONE}/status", if_none_match=etag)
    assert (changed.status, changed.data["held"]) == (200, 1)
    assert changed.headers["etag"] != etag


def test_a_status_changes_when_a_lease_ends(store: MemoryStore) -> None:
    now = [1000.0]
    with serving(store, clock=lambda: now[0]) as url:
        call = caller(url)
        call("POST", "/v1/experiments", {**MAKE, "lease": 10, "on_late": "again"})
        call("POST", f"{ONE}/ask", {"limit": 3})
        etag = str(call("GET", f"{ONE}/status").headers["etag"])
        now[0] += 11
        changed = call("GET", f"{ONE}/status", if_none_match=etag)
        assert (changed.status, changed.data["held"]) == (200, 0)


def test_a_status_changes_when_a_ticket_is_overdue(store: MemoryStore) -> None:
    now = [1000.0]
    with serving(store, clock=lambda: now[0]) as url:
        call = caller(url)
        call("POST", "/v1/experiments", {**MAKE, "lease": 10})
        call("POST", f"{ONE}/ask", {"limit": 3, "worker": "ann"})
        etag = str(call("GET", f"{ONE}/status").headers["etag"])
        now[0] += 11
        changed = call("GET", f"{ONE}/status", if_none_match=etag)
        assert (changed.status, changed.data["overdue"]) == (200, 3)
        given_back = call("POST", f"{ONE}/release", {"tickets": [{"ticket": 1}], "overdue": 1})
        assert given_back.data == {"released": 1}


def test_an_export_can_be_imported(made: Call) -> None:
    made("POST", f"{ONE}/ask", {"limit": 3})
    made("POST", f"{ONE}/tell", {"results": [{"ticket": 1, "reward": 0.5}]})
    lines = made("GET", f"{ONE}/export").raw.decode().splitlines()
    copy = MemoryStore()
    assert import_lines(lines, copy) == "experiment"
    assert Experiment.open(copy).status().told == 1


def test_to_make_the_same_again_is_as_good_if_that_is_said(made: Call) -> None:
    again = made("POST", "/v1/experiments", MAKE)
    assert (again.status, again.error[0]) == (409, "StoreExists")
    assert made("POST", "/v1/experiments", {**MAKE, "exist_ok": True}).status == 200
    other = made("POST", "/v1/experiments", {**MAKE, "exist_ok": True, "k": 2})
    assert (other.status, other.error[1].split("made with ")[1]) == (409, "k = 1 and not 2")


@pytest.mark.parametrize(
    ("rewards", "kept"),
    [
        ("binary", {"kind": "binary"}),
        ([-1, 1], {"kind": "bounded", "low": -1.0, "high": 1.0}),
        ({"kind": "sub-gaussian", "sigma": 2}, {"kind": "sub-gaussian", "sigma": 2.0}),
    ],
)
def test_rewards_are_declared_as_in_python(call: Call, rewards: Any, kept: Any) -> None:
    made = call("POST", "/v1/experiments", {**MAKE, "rewards": rewards})
    assert made.data["settings"]["rewards"] == kept


@pytest.mark.parametrize(
    ("body", "status", "kind", "message"),
    [
        ({"k": 1}, 400, "InvalidInput", "`arms` is not given, but is needed"),
        ({**MAKE, "k": 9}, 400, "InvalidInput", "`k` is 9, but must be between 1 and"),
        ({**MAKE, "arm": 3}, 400, "InvalidInput", "`arm` is given, but the fields there are:"),
        ({**MAKE, "arms": {"a": 1}}, 400, "InvalidInput", "`arms` is an object, but must be"),
        ({**MAKE, "arms": ["a", "a"]}, 400, "InvalidInput", "two arms are called 'a'"),
        ({**MAKE, "arms": 10**9}, 413, "LimitExceeded", "1,000,000,000 `arms` are given, but"),
        (
            {**MAKE, "algorithm": "os:system"},
            400,
            "InvalidInput",
            "`algorithm` is 'os:system', but",
        ),
        ({**MAKE, "algorithm": "unifrom"}, 400, "UnknownName", "algorithm 'unifrom' is unknown"),
        ({**MAKE, "rewards": {"kind": "x"}}, 400, "UnknownName", "`rewards` is {'kind': 'x'}, but"),
        (
            {**MAKE, "rewards": {"kind": "bounded", "low": 1}},
            400,
            "InvalidInput",
            "`rewards` is {'kind': 'bounded', 'low': 1}, but bounded takes `low` and `high`",
        ),
        ({**MAKE, "rewards": 7}, 400, "InvalidInput", "`rewards` is 7, but must be a range"),
        ({**MAKE, "name": ""}, 400, "InvalidInput", "`name` is '', but must be"),
        ({**MAKE, "options": {"x": 1}}, 400, "UnknownName", "option 'x' is unknown"),
        ({**MAKE, "options": 7}, 400, "InvalidInput", "`options` is 7, but must be an object"),
    ],
)
def test_what_makes_no_sense_is_refused_in_the_words_of_the_command_line(
    call: Call, body: Any, status: int, kind: str, message: str
) -> None:
    reply = call("POST", "/v1/experiments", body)
    assert (reply.status, reply.error[0]) == (status, kind)
    assert reply.error[1].startswith(message)
    assert call("GET", "/v1/experiments").data["total"] == 0


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("ask", {"limit": 0}, 400, "`limit` is 0, but must be a whole number of at least 1"),
        (
            "ask",
            {"limit": 10_001},
            413,
            "`limit` is 10,001, but a service hands out at most 10,000",
        ),
        ("ask", {"worker": 7}, 400, "`worker` is 7, but must be a text"),
        ("ask", {"lease": "x"}, 400, "`lease` is 'x', but must be a finite number"),
        ("tell", {}, 400, "`results` is not given, but is needed"),
        ("tell", {"results": 7}, 400, "`results` is 7, but must be a list"),
        ("tell", {"results": [7]}, 400, "a result is 7, but must be an object"),
        ("tell", {"results": [{"ticket": 0}]}, 400, "`reward` is not given, but is needed"),
        ("tell", {"results": [{"ticket": 99, "reward": 1}]}, 404, "ticket 99 was never handed out"),
        (
            "tell",
            {"results": [{"ticket": 0, "reward": 7e99}]},
            400,
            "the reward of ticket 0 (arm 'a')",
        ),
        ("tell", {"results": [{"ticket": 0, "reward": "1"}]}, 400, "the reward of ticket 0 (arm"),
        ("tell", {"results": [{"ticket": 0, "reward": 1, "arm": "b"}]}, 404, "ticket 0 is for arm"),
        ("tell", {"results": [{"ticket": 0, "reward": 1, "arm": []}]}, 400, "`arm` is [], but"),
        ("fail", {"ticket": 0}, 400, "`reason` is not given, but is needed"),
        ("fail", {"ticket": 0, "reason": "x" * 10_001}, 400, "`reason` is xxxx"),
        ("release", {}, 400, "no `worker`, `tickets` or `overdue` is given, but one is needed"),
        ("release", {"tickets": 7}, 400, "`tickets` is 7, but must be a list"),
        ("release", {"tickets": [7]}, 400, "a ticket is 7, but must be an object"),
        ("release", {"tickets": [{"ticket": 9}]}, 404, "ticket 9 was never handed out"),
    ],
)
def test_a_request_that_makes_no_sense_changes_nothing(
    made: Call, path: str, body: Any, status: int, message: str
) -> None:
    made("POST", f"{ONE}/ask", {"limit": 2})
    reply = made("POST", f"{ONE}/{path}", body)
    assert (reply.status, reply.error[1][: len(message)]) == (status, message)
    assert made("GET", f"{ONE}/standing").data["told"] == 0


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "the body must be a JSON object in UTF-8"),
        (b"\xff{}", "the body must be a JSON object in UTF-8"),
        (b'{"limit": NaN}', "the body must be a JSON object in UTF-8: NaN is no number of JSON"),
        (b"[1]", "the body is [1], but must be a JSON object"),
        (b"[" * 100_000, "the body must be a JSON object in UTF-8: too deep"),
        (b'{"worker": "\\ud800"}', "the body must be a JSON object in UTF-8"),
        (b'{"limit": 1' + b"0" * 5000 + b"}", "the body must be a JSON object in UTF-8"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(made: Call, raw: bytes, message: str) -> None:
    reply = made("POST", f"{ONE}/ask", raw)
    assert (reply.status, reply.error[0]) == (400, "InvalidInput")
    assert reply.error[1].startswith(message)


def test_a_body_must_say_that_it_is_json(made: Call) -> None:
    reply = made("POST", f"{ONE}/ask", b"{}", content_type="text/plain")
    words = "the content type is 'text/plain', but must be 'application/json'"
    assert (reply.status, reply.error) == (415, ("InvalidInput", words))


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "BREW"])
def test_another_method_is_refused_with_those_there_are(made: Call, method: str) -> None:
    reply = made(method, "/v1/experiments")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    assert reply.error[1] == f"the method is {method!r}, but must be GET, HEAD, OPTIONS, POST"


@pytest.mark.parametrize("path", ["/v1", "/v2/experiments", "/v1/experiments/", "//", "/static/x"])
def test_elsewhere_is_nothing(call: Call, path: str) -> None:
    assert call("GET", path).status == 404


def test_an_experiment_that_is_not_there_is_said_to_be_so(made: Call) -> None:
    words = "there is no experiment 'other' in memory; it holds 'experiment'"
    for method, path in (("GET", "status"), ("GET", "export"), ("POST", "ask")):
        reply = made(method, f"/v1/experiments/other/{path}", None if method == "GET" else {})
        assert (reply.status, reply.error) == (404, ("StoreMissing", words))


def test_lists_come_a_hundred_at_a_time(call: Call) -> None:
    for number in range(103):
        call("POST", "/v1/experiments", {**MAKE, "name": str(number)})
    first = call("GET", "/v1/experiments").data
    rest = call("GET", f"/v1/experiments?offset={first['next']}").data
    assert [len(first["experiments"]), len(rest["experiments"])] == [100, 3]
    assert (first["total"], rest["next"]) == (103, None)
    assert call("GET", "/v1/experiments?offset=-1").status == 400


def test_experiments_beyond_those_kept_open_go_on_all_the_same(store: MemoryStore) -> None:
    with serving(store, limits=Limits(rate=1e6, opened=2)) as url:
        call = caller(url)
        for number in range(5):
            call("POST", "/v1/experiments", {**MAKE, "name": str(number)})
        for _ in range(2):
            for number in range(5):
                assert call("POST", f"/v1/experiments/{number}/ask", {}).status == 200
        held = [
            call("GET", f"/v1/experiments/{number}/standing").data["held"] for number in range(5)
        ]
    assert held == [2] * 5


def test_health_and_metrics_speak_of_the_process(made: Call) -> None:
    assert made("GET", "/ready").data["status"] == "ok"
    made("POST", f"{ONE}/ask", {"limit": 3})
    made("POST", f"{ONE}/tell", {"results": [{"ticket": 0, "reward": 1}]})
    made("POST", "/v1/experiments", {**MAKE, "name": 'quo"te\\ \n'})
    text = made("GET", "/metrics").raw.decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines["shortlist_rewards_total"] == "1"
    assert lines["shortlist_tickets_total"] == "3"
    assert lines['shortlist_experiment_held_tickets{experiment="experiment"}'] == "2"
    assert lines['shortlist_experiment_rewards{experiment="quo\\"te\\\\ \\n"}'] == "0"
    assert lines['shortlist_experiment_state{experiment="experiment",state="ready"}'] == "1"
    assert lines['shortlist_experiment_state{experiment="experiment",state="stopped"}'] == "0"
    assert lines['shortlist_queue_length{work="writes"}'] == "0"
    assert float(lines["process_cpu_seconds_total"]) > 0
    asked = (
        'shortlist_requests_total{method="POST",route="/v1/experiments/{name}/ask",status="200"}'
    )
    assert lines[asked] == "1"
    route = '{route="/v1/experiments"'
    name = "shortlist_request_duration_seconds"
    counts = [int(value) for each, value in lines.items() if f"{name}_bucket{route}" in each]
    assert counts == sorted(counts)
    assert counts[-1] == int(lines[f"{name}_count{route}}}"]) == 2


def test_methods_that_somebody_makes_up_do_not_fill_the_metrics(call: Call) -> None:
    for number in range(5):
        call(f"METHOD{number}", "/ready")
    assert "METHOD" not in call("GET", "/metrics").raw.decode()


def test_every_reply_lets_a_browser_do_little(made: Call) -> None:
    for path in ("/", "/ready", f"{ONE}/status", "/nowhere", "/experiments/experiment"):
        headers = made("GET", path).headers
        assert "default-src 'none'; script-src 'self'" in str(headers["content-security-policy"])
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["access-control-allow-origin"] is None
        assert headers["server"] is None


def test_only_sites_that_were_asked_for_may_call_from_a_browser(store: MemoryStore) -> None:
    with serving(store, origins=("https://ours.example",)) as url:
        call = caller(url)
        ours = call("GET", "/ready", origin="https://ours.example")
        assert ours.headers["access-control-allow-origin"] == "https://ours.example"
        theirs = call("GET", "/ready", origin="https://theirs.example")
        assert theirs.headers["access-control-allow-origin"] is None
        assert call("POST", "/v1/experiments", MAKE, origin="https://ours.example").status == 201


def test_an_error_inside_is_logged_and_not_shown(
    made: Call, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: Experiment, *, partial: bool) -> None:
        raise ZeroDivisionError("a secret")

    with monkeypatch.context() as patch:
        patch.setattr(Experiment, "result", broken)
        reply = made("GET", f"{ONE}/result")
    assert (reply.status, "secret" in reply.raw.decode()) == (500, False)
    assert "a secret" in caplog.text
    assert "ZeroDivisionError" not in json.dumps(reply.data)


def test_options_and_head_answer_as_the_standard_says(made: Call) -> None:
    options = made("OPTIONS", f"{ONE}/status")
    assert (options.status, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    head, get = made("HEAD", f"{ONE}/status"), made("GET", f"{ONE}/status")
    assert (head.status, head.raw) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("header", ["*", "{}", "W/{}", '"other", {}'])
def test_a_version_that_the_caller_has_is_not_sent_again(made: Call, header: str) -> None:
    etag = made("GET", f"{ONE}/status").headers["etag"]
    assert made("GET", f"{ONE}/status", if_none_match=header.format(etag)).status == 304
    assert made("GET", f"{ONE}/status", if_none_match='"other"').status == 200


def test_a_name_is_short_enough_for_an_address(call: Call) -> None:
    reply = call("POST", "/v1/experiments", {**MAKE, "name": "x" * 201})
    assert reply.status == 400
    assert reply.error[1] == (
        "`name` has 201 characters, but must have at most 200: it is part of addresses"
    )
    assert call("POST", "/v1/experiments", {**MAKE, "name": "é" * 200}).status == 201
