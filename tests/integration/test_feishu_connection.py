"""The long connection against a real WebSocket: acks, time limits, losses, refusals, several apps, proxies."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request as Handshake
from websockets.http11 import Response as HandshakeAnswer

from agno_lark.errors import ConnectionRefused
from agno_lark.feishu import Connection, ConnectionLimits, ConnectionState, Event
from tests.feishu_server import Reply, Socket, TinyFeishu, event, frame, running

FAST = ConnectionLimits(answer_within_s=0.15, drain_s=1.0, pace=0.02)
Answer = Mapping[str, Any] | None


class Accepting:
    """An `accept` that remembers, and does what the test wants for each event."""

    def __init__(self, act: Callable[[Event], Awaitable[Answer]] | None = None) -> None:
        self.events: list[Event] = []
        self.finished: list[str] = []
        self._act = act

    async def __call__(self, event: Event) -> Answer:
        self.events.append(event)
        answer = await self._act(event) if self._act is not None else None
        self.finished.append(event.event_id)
        return answer


def connection(
    feishu: TinyFeishu, accept: Accepting, limits: ConnectionLimits = FAST, app_id: str = "cli_1"
) -> Connection:
    return Connection(app_id, "hush-secret", feishu.url, accept, limits=limits)


async def until(true: Callable[[], bool], within_s: float = 3.0) -> None:
    async with asyncio.timeout(within_s):
        while not true():
            await asyncio.sleep(0.005)


async def test_an_event_is_acknowledged_after_accept_with_its_time() -> None:
    go_on = asyncio.Event()

    async def wait(_event: Event) -> Answer:
        await go_on.wait()
        return None

    accept = Accepting(wait)
    async with TinyFeishu() as feishu:
        held = connection(feishu, accept, ConnectionLimits())
        async with running(held.run):
            socket = await feishu.socket()
            await socket.send_event(event("e1"))
            await until(lambda: len(accept.events) == 1)
            assert socket.acks.empty()
            assert held.snapshot().in_flight == 1
            go_on.set()
            code, answer, headers = await socket.ack()
            assert (code, answer) == (200, None)
            assert headers["message_id"] == "m1"
            assert int(headers["biz_rt"]) >= 0
            status = held.snapshot()
            assert (status.state, status.reconnects) == (ConnectionState.CONNECTED, 0)
            assert status.events == {"im.message.receive_v1": 1}
            assert status.last_frame_ms is not None
            assert status.connected_since_ms is not None
        assert held.snapshot().state is ConnectionState.CLOSED


async def test_connecting_and_accepting_block_the_event_loop_at_no_time() -> None:
    async with TinyFeishu() as feishu:
        with blockbuster_ctx():
            async with running(connection(feishu, Accepting()).run):
                socket = await feishu.socket()
                await socket.send_event(event())
                assert (await socket.ack())[0] == 200


async def test_a_card_clicks_answer_travels_back() -> None:
    async def toast(_event: Event) -> Answer:
        return {"toast": {"type": "success", "content": "已批准"}}

    async with TinyFeishu() as feishu, running(connection(feishu, Accepting(toast)).run):
        socket = await feishu.socket()
        await socket.send_event(event(event_type="card.action.trigger"))
        assert (await socket.ack())[:2] == (200, {"toast": {"type": "success", "content": "已批准"}})


async def test_a_failure_asks_for_the_event_again_and_logs_no_words_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_event: Event) -> Answer:
        raise RuntimeError("the message said: hunter2")

    async with TinyFeishu() as feishu:
        held = connection(feishu, Accepting(fail))
        async with running(held.run):
            socket = await feishu.socket()
            await socket.send_event(event())
            assert (await socket.ack())[0] == 500
            assert (held.snapshot().failures, held.snapshot().late) == (1, 0)
    (record,) = [record for record in caplog.records if getattr(record, "action", "") == "event_failed"]
    assert record.__dict__["error"] == "RuntimeError"
    assert "hunter2" not in str(record.__dict__)


async def test_a_late_accept_is_acknowledged_with_500_and_still_finishes() -> None:
    async def slow(_event: Event) -> Answer:
        await asyncio.sleep(0.3)
        return {"toast": {}}

    accept = Accepting(slow)
    async with TinyFeishu() as feishu:
        held = connection(feishu, accept)
        async with running(held.run):
            socket = await feishu.socket()
            await socket.send_event(event())
            assert (await socket.ack())[:2] == (500, None)
            assert accept.finished == []
            await until(lambda: accept.finished == ["e1"])
            assert (held.snapshot().failures, held.snapshot().late) == (1, 1)
            assert socket.acks.empty()


async def test_an_answer_that_is_no_json_is_a_failure_and_not_the_end() -> None:
    async def odd(_event: Event) -> Answer:
        return {"toast": object()}

    async with TinyFeishu() as feishu, running(connection(feishu, Accepting(odd)).run):
        socket = await feishu.socket()
        await socket.send_event(event())
        assert (await socket.ack())[0] == 500


async def test_events_are_accepted_side_by_side_within_bounds() -> None:
    now: list[int] = []
    peak: list[int] = []

    async def slow(_event: Event) -> Answer:
        now.append(1)
        peak.append(len(now))
        await asyncio.sleep(0.05)
        now.pop()
        return None

    limits = ConnectionLimits(answer_within_s=2.0, max_running=3, max_waiting=20)
    async with TinyFeishu() as feishu, running(connection(feishu, Accepting(slow), limits).run):
        socket = await feishu.socket()
        for number in range(9):
            await socket.send_event(event(f"e{number}"), f"m{number}")
        codes = [(await socket.ack())[0] for _ in range(9)]
    assert codes == [200] * 9
    assert max(peak) == 3


async def test_events_without_a_place_are_asked_for_again_untouched() -> None:
    async def slow(_event: Event) -> Answer:
        await asyncio.sleep(0.4)
        return None

    accept = Accepting(slow)
    limits = ConnectionLimits(answer_within_s=0.1, max_running=1, max_waiting=1)
    async with TinyFeishu() as feishu:
        held = connection(feishu, accept, limits)
        async with running(held.run):
            socket = await feishu.socket()
            for number in range(3):
                await socket.send_event(event(f"e{number}"), f"m{number}")
            assert [(await socket.ack())[0] for _ in range(3)] == [500] * 3
            await until(lambda: len(accept.finished) == 1)
            assert [got.event_id for got in accept.events] == ["e0"]
            assert (held.snapshot().failures, held.snapshot().late) == (3, 2)


async def test_junk_never_ends_the_connection() -> None:
    async with TinyFeishu() as feishu:
        held = connection(feishu, Accepting())
        async with running(held.run):
            socket = await feishu.socket()
            await socket.ws.send(b"\xff\xff\xff")
            await socket.ws.send("text")
            await socket.ws.send(frame(1, {"type": "card"}))
            await socket.ws.send(frame(0, {"type": "pong"}, b"no json"))
            await socket.ws.send(frame(7, {}))
            await socket.send_event(b"not an event", "m0")
            assert (await socket.ack())[0] == 200  # or the same bytes would come for hours
            await socket.send_event(event("e1", "nobody.knows_v9"))
            assert (await socket.ack())[0] == 200
            status = held.snapshot()
            assert (status.malformed, status.reconnects) == (3, 0)
            assert status.events == {"nobody.knows_v9": 1}


async def test_parts_in_any_order_become_one_event_with_one_ack() -> None:
    accept = Accepting()
    payload = str(event("e1", text="x" * 50)).replace("'", '"').encode()
    pieces = [payload[:20], payload[20:90], payload[90:]]
    async with TinyFeishu() as feishu, running(connection(feishu, accept).run):
        socket = await feishu.socket()
        for index in (2, 0, 0, 1):
            await socket.send_event(pieces[index], "m1", f"3/{index}")
        code, _, headers = await socket.ack()
        assert (code, headers["seq"]) == (200, "1")
        await asyncio.sleep(0.02)
        assert socket.acks.empty()
    assert [got.event_id for got in accept.events] == ["e1"]


async def test_a_dropped_socket_is_noticed_and_the_next_one_works() -> None:
    accept = Accepting()
    async with TinyFeishu() as feishu:
        held = connection(feishu, accept)
        async with running(held.run):
            first = await feishu.socket()
            first.ws.transport.abort()
            second = await feishu.socket()
            await second.send_event(event("e2"))
            assert (await second.ack())[0] == 200
            status = held.snapshot()
            assert (status.state, status.reconnects, status.detail) == (ConnectionState.CONNECTED, 1, "")


async def test_an_accept_outlives_the_socket_its_event_came_on() -> None:
    go_on = asyncio.Event()

    async def wait(_event: Event) -> Answer:
        await go_on.wait()
        return None

    accept = Accepting(wait)
    async with TinyFeishu() as feishu:
        held = connection(feishu, accept, ConnectionLimits(pace=0.02))
        async with running(held.run):
            first = await feishu.socket()
            await first.send_event(event("e1"))
            await until(lambda: len(accept.events) == 1)
            first.ws.transport.abort()
            second = await feishu.socket()
            go_on.set()
            await until(lambda: accept.finished == ["e1"])
            await asyncio.sleep(0.02)
            assert second.acks.empty()  # it comes again instead, and dedup knows it


async def test_a_silent_socket_is_noticed_after_three_pings(caplog: pytest.LogCaptureFixture) -> None:
    async with TinyFeishu(PingInterval=2) as feishu:
        feishu.pong = False
        held = connection(feishu, Accepting(), ConnectionLimits(pace=0.1))
        async with running(held.run):
            first = await feishu.socket()
            feishu.pong = True
            await until(lambda: first.pings.qsize() >= 2)
            second = await feishu.socket()
            await until(lambda: second.pings.qsize() >= 4)
            assert (held.snapshot().state, held.snapshot().reconnects) == (ConnectionState.CONNECTED, 1)
    reasons = [record.__dict__["reason"] for record in caplog.records if "reason" in record.__dict__]
    assert reasons == ["Feishu has been silent for 3 pings"]


async def test_a_pong_brings_new_intervals() -> None:
    async with TinyFeishu(PingInterval=80000) as feishu, running(connection(feishu, Accepting()).run):
        socket = await feishu.socket()
        await socket.pings.get()
        assert socket.pings.empty()
        await socket.ws.send(frame(0, {"type": "pong"}, b'{"PingInterval":1,"ReconnectInterval":1}'))
        await until(lambda: socket.pings.qsize() >= 3)


@pytest.mark.parametrize(
    ("code", "names"),
    [(514, "FEISHU_APP_SECRET"), (1000040351, "LARK_API_BASE_URL"), (403, "self-built")],
)
async def test_a_final_code_ends_the_connection_and_names_the_setting(code: int, names: str) -> None:
    async with TinyFeishu() as feishu:
        feishu.discovery = lambda _seen: Reply(json={"code": code, "msg": "no"})
        held = connection(feishu, Accepting())
        with pytest.raises(ConnectionRefused, match=names):
            await asyncio.wait_for(held.run(), 3)
        assert held.snapshot().state is ConnectionState.REFUSED
        assert names in held.snapshot().sentence
        assert len(feishu.http.seen) == 1


async def test_a_busy_feishu_is_asked_again() -> None:
    answers = [Reply(status=502), Reply(json={"code": 1, "msg": "busy"}), Reply(content=b"<html>"), Reply(cut=True)]
    async with TinyFeishu() as feishu:
        good = feishu.discovery
        feishu.discovery = lambda seen: answers.pop(0) if answers else good(seen)
        async with running(connection(feishu, Accepting()).run):
            socket = await feishu.socket()
            await socket.send_event(event())
            assert (await socket.ack())[0] == 200
        assert len(feishu.http.seen) == 5
        assert feishu.http.seen[0].json == {"AppID": "cli_1", "AppSecret": "hush-secret"}
        assert feishu.http.seen[0].headers["locale"] == "zh"


async def test_a_rejected_handshake_is_retried_or_final_by_its_headers() -> None:
    headers = [
        {"handshake-status": "514", "handshake-msg": "busy", "handshake-autherrcode": "1000040350"},
        {"handshake-status": "514", "handshake-msg": "ticket", "handshake-autherrcode": "9"},
        {"handshake-status": "403", "handshake-msg": "no"},
    ]

    def reject(ws: ServerConnection, _request: Handshake) -> HandshakeAnswer:
        answer = ws.respond(403, "no\n")
        for name, value in headers.pop(0).items():
            answer.headers[name] = value
        return answer

    async with TinyFeishu() as feishu:
        feishu.reject = reject
        with pytest.raises(ConnectionRefused, match="self-built"):
            await asyncio.wait_for(connection(feishu, Accepting()).run(), 3)
    assert headers == []


async def test_as_many_failures_as_feishu_allows_are_the_end() -> None:
    async with TinyFeishu(ReconnectCount=2) as feishu:
        feishu.reject = lambda ws, _request: ws.respond(500, "no\n")
        with pytest.raises(ConnectionRefused, match=r"allows \(2\)"):
            await asyncio.wait_for(connection(feishu, Accepting()).run(), 3)
        assert len(feishu.http.seen) == 3


@pytest.mark.parametrize("by_cancelling", [True, False])
async def test_stopping_acknowledges_what_was_taken_and_takes_no_more(by_cancelling: bool) -> None:
    async def slow(_event: Event) -> Answer:
        await asyncio.sleep(0.1)
        return None

    accept = Accepting(slow)
    async with TinyFeishu() as feishu:
        held = connection(feishu, accept, ConnectionLimits(drain_s=2.0))
        async with running(held.run) as task:
            socket = await feishu.socket()
            await socket.send_event(event("e1"))
            await until(lambda: len(accept.events) == 1)
            if by_cancelling:
                task.cancel()
            else:
                stopping = asyncio.create_task(held.stop())
            await asyncio.sleep(0.02)
            await socket.send_event(event("e2"), "m2")
            assert (await socket.ack())[0] == 200
            await asyncio.wait({task})
            if not by_cancelling:
                await stopping
                assert task.exception() is None
            await socket.ws.wait_closed()
            assert socket.ws.close_code == 1000
    assert accept.finished == ["e1"]
    assert held.snapshot().state is ConnectionState.CLOSED


async def test_draining_is_bounded() -> None:
    async def hang(_event: Event) -> Answer:
        await asyncio.sleep(60)
        return None

    accept = Accepting(hang)
    async with TinyFeishu() as feishu:
        held = connection(feishu, accept, ConnectionLimits(drain_s=0.05))
        async with running(held.run):
            socket = await feishu.socket()
            await socket.send_event(event("e1"))
            await until(lambda: len(accept.events) == 1)
            await asyncio.wait_for(held.stop(), 2)
    assert held.snapshot().in_flight == 0
    assert accept.finished == []


async def test_stopping_while_waiting_to_reconnect_is_immediate() -> None:
    async with TinyFeishu(ReconnectInterval=86400, ReconnectNonce=86400) as feishu:
        feishu.reject = lambda ws, _request: ws.respond(500, "no\n")
        held = connection(feishu, Accepting(), ConnectionLimits())
        async with running(held.run):
            await until(lambda: held.snapshot().state is ConnectionState.WAITING)
            await asyncio.wait_for(held.stop(), 1)
        assert held.snapshot().state is ConnectionState.CLOSED


async def test_two_apps_in_one_loop_know_nothing_of_each_other() -> None:
    one, two = Accepting(), Accepting()
    async with TinyFeishu() as feishu, TinyFeishu() as other:
        first, second = connection(feishu, one, app_id="cli_1"), connection(other, two, app_id="cli_2")
        async with running(first.run), running(second.run):
            sockets: list[Socket] = [await feishu.socket(), await other.socket()]
            await sockets[0].send_event(event("e1"))
            await sockets[1].send_event(event("e2"))
            assert [(await socket.ack())[0] for socket in sockets] == [200, 200]
            await first.stop()
            await sockets[1].send_event(event("e3"), "m3")
            assert (await sockets[1].ack())[0] == 200
            assert second.snapshot().state is ConnectionState.CONNECTED
    assert [got.event_id for got in one.events] == ["e1"]
    assert [got.event_id for got in two.events] == ["e2", "e3"]


async def test_no_secret_is_logged_even_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with TinyFeishu() as feishu, running(connection(feishu, Accepting()).run):
        socket = await feishu.socket()
        await socket.send_event(event(text="hunter2"))
        await socket.ack()
    ours = [record for record in caplog.records if not record.name.startswith("websockets.server")]
    told = "\n".join(str(record.__dict__) + record.getMessage() for record in ours)
    assert any(getattr(record, "action", "") == "connected" for record in ours)
    for secret in ("hush", "ticket", "hunter2"):
        assert secret not in told
