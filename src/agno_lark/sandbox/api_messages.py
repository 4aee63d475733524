"""im/v1/messages: send, reply, read, edit, patch, recall, forward, list (payloads/responses/message_*.json)."""

import json
from typing import Any

from agno_lark.sandbox.calls import Answer, Call, Routes, invalid_field
from agno_lark.sandbox.content import degraded_card
from agno_lark.sandbox.events import wire_content
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Card, Chat, Json, Message
from agno_lark.sandbox.refusals import Refused
from agno_lark.sandbox.sendable import Sendable, read_card, read_sendable

__all__ = ["message_json", "own_message", "register", "target_message"]

UUID_CHARS = 50
MAX_EDITS = 20
PATCHABLE_MS = 14 * 24 * 3600 * 1000
RECALLED_TEXT = "This message was recalled"


def register(routes: Routes) -> None:
    """feishu.md section 4."""
    base = "/open-apis/im/v1/messages"
    routes.add("POST", base, "message.create")(_create)
    routes.add("GET", base, "message.list")(_list)
    routes.add("POST", f"{base}/:message_id/reply", "message.reply")(_reply)
    routes.add("POST", f"{base}/:message_id/forward", "message.forward")(_forward)
    routes.add("GET", f"{base}/:message_id", "message.get")(_get)
    routes.add("PUT", f"{base}/:message_id", "message.update")(_update)
    routes.add("PATCH", f"{base}/:message_id", "message.patch")(_patch)
    routes.add("DELETE", f"{base}/:message_id", "message.delete")(_delete)


# -- finding what a call is about ------------------------------------------------------------------------------------


def target_message(feishu: LocalFeishu, message_id: str) -> Message:
    """A message by its id. Raises Refused 99992354 for unknown ids and for ids that are no `om_`."""
    message = feishu.world.messages.get(message_id)
    if message is None:
        raise Refused(99992354, f"these ids not existed: [{message_id}]")
    return message


def own_message(feishu: LocalFeishu, message_id: str, *, code: int, why: str) -> Message:
    """The bot's own message, not recalled. Raises Refused: 99992354, 230011, or `code` for others' messages."""
    message = target_message(feishu, message_id)
    if message.recalled:
        raise Refused(230011, "The message was withdrawn.")
    if not message.sender_is_bot:
        raise Refused(code, why)
    return message


def _receiving_chat(feishu: LocalFeishu, call: Call) -> Chat:
    """The chat `receive_id` means: `oc_` by chat_id, else a person's direct chat."""
    kind = call.ask("receive_id_type")
    receive_id = call.text("receive_id")
    world = feishu.world
    if kind == "chat_id":
        if not receive_id.startswith("oc_"):
            raise Refused(230034, f"The receive_id is invalid: {receive_id} is no chat_id")
        chat = world.chats.get(receive_id)
        if chat is None or not chat.has_bot:
            raise Refused(230002, "The bot can not be outside the group.")
        return chat
    prefixes = {"open_id": "ou_", "union_id": "on_", "user_id": ""}
    if kind not in prefixes:
        raise invalid_field("receive_id_type", "must be open_id, union_id, user_id or chat_id")
    if not receive_id.startswith(prefixes[kind]):
        raise Refused(230034, f"The receive_id is invalid: {receive_id} is no {kind}")
    person = next((p for p in world.people if receive_id == getattr(p, kind)), None)
    if person is None:
        raise Refused(99992351, f"these {kind.replace('_', ' ')}s not existed: [{receive_id}]")
    return world.direct_chat(person)


# -- sending ---------------------------------------------------------------------------------------------------------


def _uuid(call: Call) -> str:
    uuid = call.text("uuid", required=False)
    if len(uuid) > UUID_CHARS:
        raise invalid_field("uuid", f"the max len is {UUID_CHARS}")
    return uuid


def _send(
    feishu: LocalFeishu, call: Call, chat: Chat, *, reply_to: str | None = None, in_thread: bool = False
) -> Answer:
    uuid = _uuid(call)
    before = feishu.sent_before(uuid) if uuid else None
    if before is not None:
        return Answer.data(message_json(feishu, feishu.world.messages[before]))
    feishu.within_rate(
        "send",
        chat.chat_id,
        feishu.limits.sends_per_chat_per_s,
        code=230020,
        message="This operation triggers the frequency limit.",
    )
    sendable = read_sendable(feishu, call.text("msg_type"), call.text("content"))
    message = _post(feishu, chat, sendable, reply_to=reply_to, in_thread=in_thread)
    if uuid:
        feishu.note_uuid(uuid, message.message_id)
    return Answer.data(message_json(feishu, message))


def _post(
    feishu: LocalFeishu, chat: Chat, sendable: Sendable, *, reply_to: str | None = None, in_thread: bool = False
) -> Message:
    return feishu.world.bot_message(
        chat, sendable.msg_type, sendable.content, card=sendable.card, reply_to=reply_to, in_thread=in_thread
    )


def _create(feishu: LocalFeishu, call: Call) -> Answer:
    return _send(feishu, call, _receiving_chat(feishu, call))


def _reply(feishu: LocalFeishu, call: Call) -> Answer:
    target = target_message(feishu, call.params["message_id"])
    uuid = _uuid(call)
    if target.recalled and not (uuid and feishu.sent_before(uuid)):
        raise Refused(230011, "The message was withdrawn.")
    chat = feishu.world.chats[target.chat_id]
    if not chat.has_bot:
        raise Refused(230002, "The bot can not be outside the group.")
    in_thread = call.body.get("reply_in_thread", False)
    if not isinstance(in_thread, bool):
        raise invalid_field("reply_in_thread", "must be a boolean")
    return _send(feishu, call, chat, reply_to=target.message_id, in_thread=in_thread)


def _forward(feishu: LocalFeishu, call: Call) -> Answer:
    source = target_message(feishu, call.params["message_id"])
    if source.recalled:
        raise Refused(230011, "The message was withdrawn.")
    if source.card_id and feishu.world.is_streaming(feishu.world.cards[source.card_id]):
        raise Refused(230099, "Failed to create card content, ext=ErrCode: 11310; ErrMsg: card is streaming; ")
    chat = _receiving_chat(feishu, call)
    content: Json = feishu.world.card_json(source) or source.sent
    sendable = Sendable(msg_type=source.msg_type, content=content, card=None)
    message = _post(feishu, chat, sendable)
    message.resources = dict(source.resources)
    return Answer.data(message_json(feishu, message))


# -- reading ---------------------------------------------------------------------------------------------------------


def message_json(feishu: LocalFeishu, message: Message, *, card_content: str = "", bots_as_app: bool = False) -> Json:
    """A message as the API tells it. Absent ids are absent; a mentioned bot may come as its app."""
    app = feishu.world.app
    data: Json = {"message_id": message.message_id}
    for name in ("root_id", "parent_id", "thread_id"):
        if getattr(message, name):
            data[name] = getattr(message, name)
    sender_id, id_type, sender_type = (
        (app.app_id, "app_id", "app") if message.sender_is_bot else (message.sender_id, "open_id", "user")
    )
    data |= {
        "msg_type": message.msg_type,
        "create_time": str(message.created_ms),
        "update_time": str(message.updated_ms),
        "deleted": message.recalled,
        "updated": message.edits > 0,
        "chat_id": message.chat_id,
        "sender": {"id": sender_id, "id_type": id_type, "sender_type": sender_type, "tenant_key": app.tenant_key},
        "body": {"content": RECALLED_TEXT if message.recalled else _api_content(feishu, message, card_content)},
    }
    if message.mentions and not message.recalled:
        data["mentions"] = [
            {
                "key": mention.key,
                "id": app.app_id if mention.is_bot and bots_as_app else mention.open_id,
                "id_type": "app_id" if mention.is_bot and bots_as_app else "open_id",
                "name": mention.name,
                "tenant_key": app.tenant_key,
            }
            for mention in message.mentions
        ]
    return data


def _api_content(feishu: LocalFeishu, message: Message, card_content: str) -> str:
    card = feishu.world.card_json(message)
    if card is None:
        return wire_content(message)
    told: Any = card if card_content == "user_card_content" else degraded_card(card)
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _get(feishu: LocalFeishu, call: Call) -> Answer:
    """A merged forward comes with all its descendants, flat, tied by `upper_message_id`."""
    message = target_message(feishu, call.params["message_id"])
    options: dict[str, Any] = {
        "card_content": call.ask("card_msg_content_type"),
        "bots_as_app": bool(call.ask("user_id_type")),
    }
    items = [message_json(feishu, message, **options)]
    waiting = [(child, message.message_id) for child in message.children]
    while waiting:
        child_id, upper = waiting.pop(0)
        child = feishu.world.messages[child_id]
        items.append({**message_json(feishu, child, **options), "upper_message_id": upper})
        waiting += [(grandchild, child_id) for grandchild in child.children]
    return Answer.data({"items": items})


def _list(feishu: LocalFeishu, call: Call) -> Answer:
    """A chat lists thread roots only, a thread all its messages; times in seconds; pages of at most 50."""
    kind, container = call.ask("container_id_type"), call.ask("container_id")
    world = feishu.world
    if kind == "chat":
        chat = world.chats.get(container)
        if chat is None:
            raise Refused(230002, "The bot can not be outside the group.")
        found = [m for m in map(world.messages.__getitem__, chat.timeline) if not (m.thread_id and m.parent_id)]
    elif kind == "thread":
        chat = next((c for c in world.chats.values() if container in c.threads), None)
        if chat is None:
            raise Refused(230073, "The thread is invisible to the operator.")
        if call.ask("start_time") or call.ask("end_time"):
            raise Refused(230001, "Your request contains an invalid request parameter: no times for threads.")
        found = [m for m in map(world.messages.__getitem__, chat.timeline) if m.thread_id == container]
    else:
        raise Refused(230001, "Your request contains an invalid request parameter: container_id_type.")
    size, start, end, token = (call.ask(name) or "0" for name in ("page_size", "start_time", "end_time", "page_token"))
    if not all(value.isdigit() for value in (size, start, end, token)) or int(size) > 50:
        raise Refused(230001, "Your request contains an invalid request parameter.")
    low_ms, high_ms = int(start) * 1000, int(end) * 1000 or 1 << 62
    found = [m for m in found if low_ms <= m.created_ms < high_ms + 1000]
    if call.ask("sort_type") == "ByCreateTimeDesc":
        found.reverse()
    at, count = int(token), int(size) or 20
    page = found[at : at + count]
    items = [message_json(feishu, m, card_content=call.ask("card_msg_content_type")) for m in page]
    data: Json = {"has_more": at + count < len(found), "items": items}
    if data["has_more"]:
        data["page_token"] = str(at + count)
    return Answer.data(data)


# -- changing --------------------------------------------------------------------------------------------------------


def _update(feishu: LocalFeishu, call: Call) -> Answer:
    """Text and posts, twenty times."""
    message = own_message(feishu, call.params["message_id"], code=230071, why="The operator is not the sender.")
    msg_type = call.text("msg_type")
    if message.msg_type not in ("text", "post") or msg_type not in ("text", "post"):
        raise Refused(230054, "This message type is unavailable: only text and post can be edited.")
    if message.edits >= MAX_EDITS:
        raise Refused(230072, "The message has reached the number of times it can be edited.")
    sendable = read_sendable(feishu, msg_type, call.text("content"))
    message.msg_type = msg_type
    feishu.world.bot_edit(message, sendable.content)
    return Answer.data(message_json(feishu, message))


def _patch(feishu: LocalFeishu, call: Call) -> Answer:
    """The older way to change a card: 14 days, 5/s a message, and not for card entities."""
    why = "Your request contains an invalid request parameter: not the bot's card."
    message = own_message(feishu, call.params["message_id"], code=230001, why=why)
    if message.msg_type != "interactive":
        raise Refused(230001, why)
    if feishu.world.clock.now_ms() - message.created_ms > PATCHABLE_MS:
        raise Refused(230031, "The message is older than 14 days.")
    feishu.within_rate(
        "patch",
        message.message_id,
        feishu.limits.patches_per_message_per_s,
        code=230020,
        message="This operation triggers the frequency limit.",
    )
    if message.card_id is not None:
        raise Refused(230001, "Your request contains an invalid request parameter: a card entity changes by cardkit.")
    if feishu.world.clicks.is_open(message.message_id):
        raise Refused(230099, "Failed to create card content, ext=ErrCode: 11310; ErrMsg: card action is lock; ")
    card: Card | None
    content, card = read_card(feishu, call.text("content"))
    if card is not None:
        raise Refused(230001, "Your request contains an invalid request parameter: send the card's JSON.")
    feishu.world.bot_edit(message, content)
    return Answer.data({})


def _delete(feishu: LocalFeishu, call: Call) -> Answer:
    message = target_message(feishu, call.params["message_id"])
    if message.recalled:
        raise Refused(230110, "Action unavailable as the message has been deleted.")
    if not message.sender_is_bot:
        raise Refused(230026, "No permission to recall this message.")
    feishu.world.withdraw(message)
    return Answer.data({})
