"""The decisions of the wire: discovery's codes, reconnecting, proxies, errors and retries."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agno_lark.errors import ConnectionRefused, FeishuError, SettingsError
from agno_lark.feishu import CallRefused, ErrorKind, RetryRules, kind_of, proxy_for
from agno_lark.feishu.caller import accepted, path
from agno_lark.feishu.codes import judge
from agno_lark.feishu.connection import wait_before
from agno_lark.feishu.discovery import (
    ClientConfig,
    NotConnected,
    read_config,
    read_discovery,
    read_rejection,
    refusal,
)
from agno_lark.feishu.retries import after_refusal

BASE = "https://open.feishu.cn"


def discovery(code: int = 0, url: str = "wss://x/ws?device_id=d1&service_id=33", **config: Any) -> bytes:
    return json.dumps({"code": code, "msg": "m", "data": {"URL": url, "ClientConfig": config}}).encode()


def test_an_address_is_read_with_its_rules() -> None:
    body = discovery(PingInterval=90, ReconnectInterval=5, ReconnectNonce=0, ReconnectCount=3)
    endpoint = read_discovery(200, body, base_url=BASE)
    assert (endpoint.device_id, endpoint.service_id) == ("d1", 33)
    assert endpoint.config == ClientConfig(
        ping_interval_s=90, reconnect_interval_s=5, reconnect_jitter_s=0, reconnect_count=3
    )
    assert "wss://" not in repr(endpoint)  # its ticket is a secret


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b"{}"),
        (302, discovery()),
        (200, b"<html>"),
        (200, b"{}"),
        (200, discovery(1)),
        (200, discovery(1000040343)),
        (200, discovery(1000040350)),
        (200, discovery(url="wss://x/ws?device_id=d1")),
        (200, discovery(url="wss://x/ws?service_id=3")),
        (200, discovery(url="wss://x/ws?device_id=d&service_id=x")),
        (200, discovery(url="ws://feishu.example/ws?device_id=d&service_id=3")),
        (200, discovery(url="wss://[bad/ws?device_id=d&service_id=3")),
    ],
)
def test_what_may_pass_is_tried_again(status: int, body: bytes) -> None:
    with pytest.raises(NotConnected):
        read_discovery(status, body, base_url=BASE)


@pytest.mark.parametrize(
    ("code", "base_url", "names"),
    [
        (514, BASE, ["FEISHU_APP_ID", "FEISHU_APP_SECRET"]),
        (1000040351, BASE, ["LARK_API_BASE_URL=https://open.larksuite.com"]),
        (1000040351, "https://open.larksuite.com", ["LARK_API_BASE_URL=https://open.feishu.cn"]),
        (1000040351, "http://127.0.0.1:7799", ["LARK_API_BASE_URL", "feishu.cn", "larksuite.com"]),
        (403, BASE, ["self-built", "publish"]),
        (99, BASE, ["99", "FEISHU_APP_ID"]),
    ],
)
def test_a_final_code_names_the_setting(code: int, base_url: str, names: list[str]) -> None:
    with pytest.raises(ConnectionRefused) as caught:
        read_discovery(200, discovery(code), base_url=base_url)
    assert caught.value.code == code
    for name in names:
        assert name in str(caught.value)


def test_too_many_connections_heal_by_waiting() -> None:
    error = refusal(1000040350, "", base_url=BASE)
    assert isinstance(error, NotConnected)
    assert "50" in str(error)


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({"handshake-status": "403", "handshake-msg": "no"}, ConnectionRefused),
        ({"handshake-status": "514", "handshake-autherrcode": "1000040350"}, NotConnected),
        ({"handshake-status": "514", "handshake-autherrcode": "1"}, NotConnected),
        ({"handshake-status": "what"}, NotConnected),
        ({}, NotConnected),
    ],
)
def test_a_rejected_handshake_is_read_by_its_headers(headers: dict[str, str], kind: type[FeishuError]) -> None:
    assert type(read_rejection(headers, 403, base_url=BASE)) is kind


@given(
    st.dictionaries(
        st.sampled_from(["PingInterval", "ReconnectCount", "ReconnectNonce", "ReconnectInterval"]),
        st.none() | st.integers() | st.text() | st.booleans() | st.floats(),
    )
)
def test_no_config_can_make_us_spin_or_stop(value: dict[str, Any]) -> None:
    config = read_config(value, ClientConfig())
    assert 1 <= config.ping_interval_s <= 86400
    assert 1 <= config.reconnect_interval_s <= 86400
    assert 0 <= config.reconnect_jitter_s <= 86400
    assert config.reconnect_count >= -1


def test_reconnecting_goes_by_jitter_then_interval_then_count() -> None:
    config = ClientConfig(reconnect_jitter_s=30, reconnect_interval_s=120, reconnect_count=2)
    assert wait_before(1, config, 0.5) == 15.0
    assert wait_before(2, config, 0.5) == 120.0
    assert wait_before(3, config, 0.5) is None
    assert wait_before(1_000_000, ClientConfig(), 0.0) == 120.0
    assert [wait_before(attempt, None, 1.0) for attempt in (1, 2, 3, 9)] == [1.0, 2.0, 4.0, 30.0]


@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        ("https://open.feishu.cn/x", {}, None),
        ("https://open.feishu.cn/x", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("wss://open.feishu.cn/x", {"https_proxy": "p:1"}, "http://p:1"),
        ("wss://open.feishu.cn/x", {"https_proxy": "http://a:1", "HTTPS_PROXY": "http://b:1"}, "http://a:1"),
        ("wss://open.feishu.cn/x", {"ALL_PROXY": "socks5://u:p@p:1"}, "socks5://u:p@p:1"),
        ("wss://open.feishu.cn/x", {"ALL_PROXY": "socks://p:1"}, "socks5://p:1"),
        ("https://open.feishu.cn/x", {"HTTP_PROXY": "http://p:1"}, None),
        ("ws://feishu.example/x", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("https://open.feishu.cn", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "feishu.cn"}, None),
        ("https://open.feishu.cn", {"HTTPS_PROXY": "http://p:1", "no_proxy": "x, .feishu.cn"}, None),
        ("https://open.feishu.cn", {"HTTPS_PROXY": "http://p:1", "no_proxy": "*.feishu.cn"}, None),
        ("https://open.feishu.cn", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("https://notfeishu.cn", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "feishu.cn"}, "http://p:1"),
        ("https://open.feishu.cn", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "feishu.cn:8443"}, "http://p:1"),
        ("https://open.feishu.cn:8443", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "feishu.cn:8443"}, None),
        ("wss://[fd00::1]:9/x", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "fd00::1"}, None),
        ("wss://[fd00::1]:9/x", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "[fd00::1]:9"}, None),
        ("http://127.0.0.1:7799", {"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}, None),
        ("ws://localhost:7799", {"ALL_PROXY": "http://p:1"}, None),
        ("ws://[::1]:7799", {"ALL_PROXY": "http://p:1"}, None),
        ("https://open.feishu.cn", {"HTTPS_PROXY": "", "https_proxy": " "}, None),
    ],
)
def test_http_and_websocket_go_by_one_proxy_rule(url: str, environ: dict[str, str], expected: str | None) -> None:
    assert proxy_for(url, environ) == expected


def test_a_proxy_nobody_can_speak_to_is_a_wrong_setting_without_its_password() -> None:
    with pytest.raises(SettingsError) as caught:
        proxy_for("https://open.feishu.cn", {"ALL_PROXY": "ftp://user:hunter2@p:1"})
    assert "ALL_PROXY" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "code", "said", "kind"),
    [
        (429, 99991400, "request trigger frequency limit", ErrorKind.RATE_LIMITED),
        (400, 99991400, "", ErrorKind.RATE_LIMITED),
        (429, None, "", ErrorKind.RATE_LIMITED),
        (429, 0, "ok", ErrorKind.RATE_LIMITED),
        (400, 99991663, "", ErrorKind.TOKEN_INVALID),
        (401, None, "", ErrorKind.TOKEN_INVALID),
        (400, 99991672, "Access denied", ErrorKind.SCOPE_MISSING),
        (400, 230011, "", ErrorKind.TARGET_GONE),
        (400, 5, "The message was withdrawn.", ErrorKind.TARGET_GONE),
        (400, 230002, "", ErrorKind.TARGET_UNREACHABLE),
        (400, 230099, "Failed, ext=ErrCode: 11310; ErrMsg: card table number over limit;", ErrorKind.CARD_REFUSED),
        (400, 200740, "", ErrorKind.CARD_GONE),
        (400, 300309, "", ErrorKind.STREAMING_CLOSED),
        (400, 200850, "", ErrorKind.STREAMING_CLOSED),
        (400, 300317, "", ErrorKind.SEQUENCE),
        (400, 200770, "", ErrorKind.UUID_USED),
        (400, 230025, "", ErrorKind.TOO_LONG),
        (400, 230028, "", ErrorKind.AUDIT),
        (200, 2200, "internal error", ErrorKind.TRANSIENT),
        (502, None, "", ErrorKind.TRANSIENT),
        (200, None, "", ErrorKind.TRANSIENT),
        (200, 1254290, "TooManyRequest", ErrorKind.RATE_LIMITED),
        (200, 10015, "wrong app secret", ErrorKind.PERMISSION),
        (400, 424242, "who knows", ErrorKind.OTHER),
    ],
)
def test_status_and_code_are_judged_together(status: int, code: int | None, said: str, kind: ErrorKind) -> None:
    answer = {"code": code, "msg": said} if code is not None else {"msg": said}
    error = judge(status, answer, call="POST x")
    assert error is not None
    assert kind_of(error) is kind
    assert error.retryable is kind.retryable
    assert kind.sentence in str(error)


def test_success_is_a_good_status_with_code_zero() -> None:
    assert judge(200, {"code": 0}, call="x") is None
    assert accepted(200, {}, b'{"code":0,"data":{}}', call="x") == {"code": 0, "data": {}}


def test_a_missing_permission_is_named() -> None:
    answer = {
        "code": 99991672,
        "msg": "Access denied.",
        "error": {"log_id": "L1", "permission_violations": [{"type": "x", "subject": "im:message.group_msg"}]},
    }
    error = judge(400, answer, call="GET x")
    assert error is not None
    assert (error.scopes, error.log_id) == (("im:message.group_msg",), "L1")
    assert "im:message.group_msg" in str(error)


def test_a_card_error_keeps_its_inner_code_and_drops_our_own_content() -> None:
    said = "Failed to create card content, ext=ErrCode: 200621; ErrMsg: parse card json err; ErrorValue: my secret;"
    error = judge(400, {"code": 230099, "msg": said}, call="POST x")
    assert error is not None
    assert error.inner_code == 200621
    assert "secret" not in str(error)


def refused(kind: ErrorKind, *, retry_after_s: float | None = None, uncertain: bool = False) -> CallRefused:
    return CallRefused("m", kind=kind, code=1, retry_after_s=retry_after_s, uncertain=uncertain)


def test_each_kind_has_its_patience() -> None:
    rules = RetryRules(max_rate_retries=2, max_transient_retries=2, first_wait_s=0.5, max_wait_s=30)

    def wait(error: CallRefused, *, repeatable: bool = True, tries: tuple[int, int, int] = (0, 0, 0)) -> float | None:
        return after_refusal(error, repeatable=repeatable, tries=tries, rules=rules)

    assert wait(refused(ErrorKind.TOKEN_INVALID)) == 0
    assert wait(refused(ErrorKind.TOKEN_INVALID), tries=(1, 0, 0)) is None
    assert wait(refused(ErrorKind.RATE_LIMITED, retry_after_s=7), repeatable=False) == 7
    assert wait(refused(ErrorKind.RATE_LIMITED, retry_after_s=31)) is None
    assert wait(refused(ErrorKind.RATE_LIMITED), tries=(0, 1, 0)) == 1.0
    assert wait(refused(ErrorKind.RATE_LIMITED), tries=(0, 2, 0)) is None
    assert wait(refused(ErrorKind.TRANSIENT, uncertain=True)) == 0.5
    assert wait(refused(ErrorKind.TRANSIENT, uncertain=True), repeatable=False) is None
    assert wait(refused(ErrorKind.TRANSIENT), repeatable=False) == 0.5
    assert wait(refused(ErrorKind.TRANSIENT), tries=(0, 0, 2)) is None
    for kind in (ErrorKind.SEQUENCE, ErrorKind.TARGET_GONE, ErrorKind.CARD_REFUSED, ErrorKind.OTHER):
        assert wait(refused(kind)) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-ogw-ratelimit-reset": "2", "retry-after": "9"}, 2.0),
        ({"retry-after": "9"}, 9.0),
        ({"x-ogw-ratelimit-reset": "soon"}, None),
        ({"x-ogw-ratelimit-reset": "1780382911"}, None),
        ({"x-ogw-ratelimit-reset": "nan"}, None),
        ({}, None),
    ],
)
def test_the_wait_feishu_asks_for_is_read(headers: dict[str, str], expected: float | None) -> None:
    with pytest.raises(CallRefused) as caught:
        accepted(429, headers, b"", call="x")
    assert caught.value.retry_after_s == expected


def test_an_id_cannot_leave_its_place_in_a_path() -> None:
    assert path("/m/{}/reply", "om_1/../../x?y") == "/m/om_1%2F..%2F..%2Fx%3Fy/reply"


@given(
    st.integers(0, 599),
    st.binary(max_size=60) | st.builds(lambda code: json.dumps({"code": code}).encode(), st.integers()),
)
def test_any_answer_is_a_success_or_a_refusal(status: int, content: bytes) -> None:
    try:
        good: bool | None = accepted(status, {}, content, call="x")["code"] == 0 and status < 400
    except CallRefused as error:
        good = error.code != 0 or status >= 400
    assert good
