"""Who is let in, what a message means, and that it is committed once with the one job that answers it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agno_lark.clock import RandomIds
from agno_lark.errors import FeishuError, StoreError
from agno_lark.feishu.events import Event, parse_event
from agno_lark.intake import Intake
from agno_lark.settings import Settings
from agno_lark.store import Store, Tx
from agno_lark.turns.rows import RunPhase, close_run, mark_submitted, remember_card_message

BOT = "ou_bot"
CREATED_MS = 1_780_382_407_313
EVENTS = Path(__file__).parents[1] / "data" / "payloads" / "events"


def message(text: str = "hello", **more: Any) -> Event:
    """A message event; `more` replaces fields of `event.message`, or `sender`, `event_id`, `mentions`."""
    body: dict[str, Any] = {
        "message_id": "om_1",
        "create_time": str(CREATED_MS),
        "chat_id": "oc_1",
        "chat_type": "p2p",
        "message_type": "text",
        "content": json.dumps({"text": text}),
    }
    sender = {"sender_id": {"open_id": more.pop("sender", "ou_a")}, "sender_type": more.pop("sender_type", "user")}
    header = {
        "event_id": more.pop("event_id", "e1"),
        "event_type": "im.message.receive_v1",
        "app_id": "cli_a",
        "tenant_key": "t1",
    }
    event = {"sender": sender | {"tenant_key": "t1"}, "message": body | more}
    return parse_event(json.dumps({"schema": "2.0", "header": header, "event": event}))


def mention(open_id: str = BOT, key: str = "@_user_1") -> dict[str, Any]:
    return {"key": key, "id": {"open_id": open_id}, "name": "Helper", "mentioned_type": "bot"}


def click(turn: object, *, who: str = "ou_a", event_id: str = "c1", card: str = "om_card", **more: Any) -> Event:
    header = {"event_id": event_id, "event_type": "card.action.trigger", "app_id": "cli_a", "tenant_key": "t1"} | more
    event = {
        "operator": {"open_id": who, "tenant_key": header["tenant_key"]},
        "token": "c-x",
        "action": {"tag": "button", "value": {"op": "turn.stop", "turn": turn}},
        "context": {"open_message_id": card, "open_chat_id": "oc_1"},
    }
    return parse_event(json.dumps({"schema": "2.0", "header": header, "event": event}))


class StillClock:
    """Stands where it is put (`now`, UTC ms)."""

    def __init__(self, now: int) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def monotonic_s(self) -> float:
        return self.now / 1000


class Door:
    """An intake on a real store; `taken` are the turns it made, `superseded` those it stopped."""

    def __init__(self, store: Store, *, now: int = CREATED_MS + 1_000, **settings: Any) -> None:
        self.store = store
        self.clock = StillClock(now)
        self.taken: list[str] = []
        self.superseded: list[str] = []
        self.intake = Intake(
            store=store,
            settings=Settings.given(feishu_app_id="cli_a", feishu_app_secret="s", **settings),
            bot_open_id=BOT,
            target=("agent", "helper"),
            clock=self.clock,
            ids=RandomIds(),
            started_ms=self.clock.now,
            taken=lambda turn_id, message_id: self.taken.append(turn_id),
            superseded=self.superseded.append,
        )

    async def jobs(self) -> list[dict[str, Any]]:
        rows = await self.store.read("SELECT kind, queue, lane, payload, state FROM jobs ORDER BY seq")
        return [dict(row) | {"payload": json.loads(row["payload"])} for row in rows]

    async def kinds(self) -> list[str]:
        return [job["kind"] for job in await self.jobs()]


@pytest.fixture
async def open_door(tmp_path: Path) -> Any:
    async with Store.open(tmp_path / "s") as store:
        yield lambda **settings: Door(store, **settings)


type OpenDoor = Callable[..., Door]


async def test_a_direct_message_becomes_a_turn_in_the_lane_of_its_session(open_door: OpenDoor) -> None:
    door = open_door()
    assert await door.intake.accept(message("hello")) is None
    (job,) = await door.jobs()
    assert job["kind"] == "turn"
    assert job["lane"] == "feishu:agent:helper:chat_oc_1:v1"
    assert job["payload"] == {"text": "hello"}
    (run,) = await door.store.read("SELECT * FROM runs")
    assert (run["requester"], run["message_id"], run["state"], run["turn_id"]) == (
        "ou_a",
        "om_1",
        "waiting",
        *door.taken,
    )


@pytest.mark.parametrize(
    ("mode", "more", "lane"),
    [
        ("user", {}, "feishu:agent:helper:chat_oc_1:user:ou_a:v1"),
        ("shared", {}, "feishu:agent:helper:chat_oc_1:v1"),
        ("user", {"thread_id": "omt_9"}, "feishu:agent:helper:chat_oc_1:thread_omt_9:user:ou_a:v1"),
        ("shared", {"thread_id": "omt_9"}, "feishu:agent:helper:chat_oc_1:thread_omt_9:v1"),
    ],
)
async def test_groups_have_the_documented_scopes(
    open_door: OpenDoor, mode: str, more: dict[str, Any], lane: str
) -> None:
    door = open_door(feishu_group_session_mode=mode)
    await door.intake.accept(message("@_user_1 hi", chat_type="group", mentions=[mention()], **more))
    assert [job["lane"] for job in await door.jobs()] == [lane]


async def test_the_same_message_is_taken_once_under_either_key(open_door: OpenDoor) -> None:
    door = open_door()
    await door.intake.accept(message(event_id="e1", message_id="om_1"))
    await door.intake.accept(message(event_id="e1", message_id="om_1"))
    await door.intake.accept(message(event_id="e2", message_id="om_1"))
    await door.intake.accept(message(event_id="e1", message_id="om_2"))
    assert len(await door.jobs()) == 1
    assert door.intake.counts == {"message.turn": 1, "message.duplicate": 3}


async def test_keys_are_apart_by_app(open_door: OpenDoor) -> None:
    door = open_door()
    await door.intake.accept(message())
    other = json.loads(json.dumps(message().raw)) | {}
    other["header"]["app_id"] = "cli_b"
    await door.intake.accept(parse_event(json.dumps(other)))
    assert len(await door.jobs()) == 2


async def test_new_is_fixed_when_it_is_accepted_and_orders_what_follows(open_door: OpenDoor) -> None:
    door = open_door()
    for number, text in enumerate(["one", "/new", "two", "/new three"]):
        await door.intake.accept(message(text, event_id=f"e{number}", message_id=f"om_{number}"))
    jobs = await door.jobs()
    assert [(job["kind"], job["lane"].rsplit(":", 1)[1]) for job in jobs if job["kind"] == "turn"] == [
        ("turn", "v1"),
        ("turn", "v2"),
        ("turn", "v3"),
    ]
    assert jobs[1]["kind"] == "command"
    assert jobs[1]["queue"] == "control"
    assert jobs[3]["payload"] == {"text": "three"}


async def test_group_talk_that_does_not_mention_the_bot_costs_no_commit(open_door: OpenDoor) -> None:
    door = open_door()
    commits = door.store.commits
    await door.intake.accept(message(chat_type="group"))
    await door.intake.accept(
        message(chat_type="group", mentions=[mention("ou_somebody")], content='{"text":"@_user_1"}')
    )
    await door.intake.accept(message("@_all standup", chat_type="group", mentions=[{"key": "@_all"}]))
    assert door.store.commits == commits
    assert door.intake.counts == {"message.not_addressed": 3}


@pytest.mark.parametrize(
    ("text", "more", "taken"),
    [
        ("/help", {}, True),
        ("／STATUS", {}, True),
        ("/help", {"mentions": [mention("ou_other")]}, False),
        ("/helpp", {}, False),
        ("/new tell me a story", {}, False),
        ("/cancel 1a2b3c4d", {}, True),
        ("/weather", {}, False),
    ],
)
async def test_a_bare_command_of_ours_needs_no_mention_in_a_group(
    open_door: OpenDoor, text: str, more: dict[str, Any], taken: bool
) -> None:
    door = open_door()
    await door.intake.accept(message(text, chat_type="group", **more))
    assert await door.kinds() == (["command"] if taken else [])


async def test_until_the_bot_knows_itself_only_direct_messages_are_taken(open_door: OpenDoor) -> None:
    door = open_door()
    door.intake.bot_open_id = ""
    with pytest.raises(FeishuError):
        await door.intake.accept(message("@_user_1 hi", chat_type="group", mentions=[mention()]))
    await door.intake.accept(message("hi", event_id="e2", message_id="om_2"))
    assert await door.kinds() == ["turn"]
    door.intake.bot_open_id = BOT
    await door.intake.accept(message("@_user_1 hi", chat_type="group", mentions=[mention()]))
    assert await door.kinds() == ["turn", "turn"], "what was not taken comes again"


async def test_the_bots_own_words_and_other_bots_are_left_alone(open_door: OpenDoor) -> None:
    door = open_door()
    await door.intake.accept(message(sender=BOT, sender_type="bot"))
    await door.intake.accept(message(sender="ou_other", sender_type="app"))
    assert door.intake.counts == {"message.own": 1, "message.bot": 1}
    friendly = open_door(feishu_allow_bots=True)
    await friendly.intake.accept(message(sender="ou_other", sender_type="app"))
    assert friendly.intake.counts == {"message.turn": 1}


@pytest.mark.parametrize(
    ("users", "chats", "who", "chat", "chat_type", "outcome"),
    [
        ("", "", "ou_x", "oc_x", "p2p", "turn"),
        ("ou_a", "", "ou_a", "oc_x", "p2p", "turn"),
        ("ou_a", "", "ou_x", "oc_x", "p2p", "denied"),
        ("ou_a", "", "ou_a", "oc_x", "group", "turn"),
        ("ou_a", "", "ou_x", "oc_x", "group", "foreign_user"),
        ("", "oc_1", "ou_x", "oc_1", "group", "turn"),
        ("", "oc_1", "ou_x", "oc_2", "group", "foreign_chat"),
        ("", "oc_1", "ou_x", "oc_2", "p2p", "denied"),
        ("ou_a", "oc_1", "ou_a", "oc_2", "p2p", "turn"),
        ("ou_a", "oc_1", "ou_a", "oc_2", "group", "foreign_chat"),
        ("ou_a", "oc_1", "ou_x", "oc_1", "group", "foreign_user"),
    ],
)
async def test_allowlists(
    open_door: OpenDoor, users: str, chats: str, who: str, chat: str, chat_type: str, outcome: str
) -> None:
    door = open_door(feishu_allowed_user_ids=users, feishu_allowed_chat_ids=chats)
    event = message("@_user_1 hi", sender=who, chat_id=chat, chat_type=chat_type, mentions=[mention()])
    await door.intake.accept(event)
    assert door.intake.counts[f"message.{outcome}"] == 1
    expected = {"turn": ["turn"], "denied": ["say"]}.get(outcome, [])
    assert await door.kinds() == expected


@pytest.mark.parametrize(
    ("event", "phrase"),
    [
        (message(message_type="audio", content='{"file_key":"f1","duration":3200}'), "hint.unsupported"),
        (message("   "), "hint.empty"),
        (message("@_user_1", chat_type="group", mentions=[mention()]), "hint.empty"),
    ],
)
async def test_what_is_no_question_is_answered_with_a_sentence(open_door: OpenDoor, event: Event, phrase: str) -> None:
    door = open_door()
    await door.intake.accept(event)
    (job,) = await door.jobs()
    assert (job["kind"], job["payload"]["phrase"]) == ("say", phrase)


@pytest.mark.parametrize(
    ("more", "language"),
    [
        ({"text": "你好"}, "zh"),
        ({"text": "hello"}, "en"),
        ({"text": "你好", "user_agent": "Lark/7 LarkLocale/en_US"}, "en"),
        ({"text": "hello", "user_agent": "Lark/7 LarkLocale/zh_CN"}, "zh"),
        ({"text": "42"}, "zh"),
    ],
)
async def test_sentences_are_in_the_persons_language(open_door: OpenDoor, more: dict[str, Any], language: str) -> None:
    door = open_door()
    await door.intake.accept(message(**more))
    assert [row["language"] for row in await door.store.read("SELECT language FROM runs")] == [language]


async def test_a_command_is_answered_in_the_language_of_the_last_turn(open_door: OpenDoor) -> None:
    door = open_door()
    await door.intake.accept(message("hello"))
    await door.intake.accept(message("/help", event_id="e2", message_id="om_2"))
    assert (await door.jobs())[1]["payload"]["language"] == "en"
    abroad = open_door(lark_api_base_url="https://open.larksuite.com")
    await abroad.intake.accept(message("/help", event_id="e3", message_id="om_3", sender="ou_new"))
    assert (await abroad.jobs())[2]["payload"]["language"] == "en"


async def test_stop_is_recorded_with_the_click_and_pressed_again_changes_nothing(open_door: OpenDoor) -> None:
    door = open_door()
    await door.intake.accept(message("hello"))
    (turn,) = door.taken
    await door.store.transact(remember_card_message, turn, "om_card")
    for event_id in ("c1", "c1", "c2"):
        answer = await door.intake.accept(click(turn, event_id=event_id))
        assert answer == {"toast": {"type": "success", "content": "Stopping…"}}
    assert await door.kinds() == ["turn", "stop_run"]
    assert (await door.store.read("SELECT cancel_requested_ms FROM runs"))[0][0] is not None


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (click("TURN", who="ou_b"), "somebody else"),
        (click("TURN", card="om_other"), "is gone"),
        (click("TURN", tenant_key="t2"), "somebody else"),
        (click("TURN", app_id="cli_b"), "已不存在"),
        (click("nobody"), "已不存在"),
        (click(None), "已不存在"),
        (click({"a": 1}), "已不存在"),
    ],
)
async def test_a_press_without_a_say_in_it_changes_nothing(open_door: OpenDoor, event: Event, told: str) -> None:
    door = open_door()
    await door.intake.accept(message("hello"))
    (turn,) = door.taken
    await door.store.transact(remember_card_message, turn, "om_card")
    meant = parse_event(json.dumps(event.raw).replace("TURN", turn))
    answer = await door.intake.accept(meant)
    assert answer is not None
    if told == "is gone":
        assert answer["toast"]["type"] == "info"
    else:
        assert told in answer["toast"]["content"]
    assert await door.kinds() == ["turn"]
    assert (await door.store.read("SELECT cancel_requested_ms FROM runs"))[0][0] is None


async def test_a_press_after_the_end_says_so(open_door: OpenDoor) -> None:
    door = open_door()
    await door.intake.accept(message("hello"))
    (turn,) = door.taken
    await door.store.transact(mark_submitted, turn, "run")
    await door.store.transact(close_run, turn, RunPhase.COMPLETED)
    answer = await door.intake.accept(click(turn))
    assert answer is not None
    assert "already ended" in answer["toast"]["content"]


async def test_what_cannot_be_committed_is_not_taken(open_door: OpenDoor) -> None:
    door = open_door()

    def broken(tx: Tx) -> None:
        tx.execute("DROP TABLE dedup_messages")

    await door.store.transact(broken)
    with pytest.raises(Exception, match="dedup_messages"):
        await door.intake.accept(message())
    assert not door.taken
    await door.store._close()
    with pytest.raises(StoreError):
        await door.intake.accept(message())


@pytest.mark.parametrize("path", sorted(EVENTS.glob("*.json")), ids=lambda path: path.stem)
async def test_every_known_event_is_taken_or_left_without_an_error(open_door: OpenDoor, path: Path) -> None:
    door = open_door()
    await door.intake.accept(parse_event(path.read_bytes()))
    assert sum(door.intake.counts.values()) == 1
    assert door.intake.counts["malformed"] == 0


async def test_an_event_nobody_can_read_is_counted_and_not_brought_again(open_door: OpenDoor) -> None:
    door = open_door()
    raw = {
        "schema": "2.0",
        "header": {"event_id": "e", "event_type": "im.message.receive_v1", "app_id": "a"},
        "event": {},
    }
    assert await door.intake.accept(parse_event(json.dumps(raw))) is None
    assert door.intake.counts == {"malformed": 1}
