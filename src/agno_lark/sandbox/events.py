"""Event bodies as Feishu sends them (payloads/events): pure functions from the world's records to JSON."""

import json

from agno_lark.sandbox.records import App, Chat, Json, Mention, Message, Person

__all__ = [
    "card_action",
    "envelope",
    "json_bytes",
    "message_recalled",
    "message_received",
    "reaction_changed",
    "wire_content",
    "without_content",
]

MERGED = "Merged and Forwarded Message"


def json_bytes(body: Json) -> bytes:
    """Compact UTF-8; text with lone surrogates, which UTF-8 cannot hold, goes as escapes."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":")).encode()


def envelope(app: App, event_type: str, event: Json, *, event_id: str, now_ms: int) -> Json:
    """The schema 2.0 envelope. Card clicks count microseconds in `create_time`, everything else milliseconds."""
    created = now_ms * 1000 if event_type == "card.action.trigger" else now_ms
    return {
        "schema": "2.0",
        "header": {
            "event_id": event_id,
            "event_type": event_type,
            "create_time": str(created),
            "token": "",
            "app_id": app.app_id,
            "tenant_key": app.tenant_key,
        },
        "event": event,
    }


def wire_content(message: Message) -> str:
    """`content` as a string; a merged forward's is bare words, not JSON."""
    if message.msg_type == "merge_forward":
        return MERGED
    return json.dumps(message.content, ensure_ascii=False, separators=(",", ":"))


def without_content(payload: bytes) -> bytes:
    """An event of a message that was recalled before it was delivered: its content is empty (payloads/README.md)."""
    body: Json = json.loads(payload)
    body["event"]["message"]["content"] = ""
    return json_bytes(body)


def _user(person: Person) -> Json:
    return {"union_id": person.union_id, "user_id": person.user_id, "open_id": person.open_id}


def _mention(mention: Mention, app: App) -> Json:
    return {
        "key": mention.key,
        "id": {"union_id": mention.union_id, "user_id": mention.user_id, "open_id": mention.open_id},
        "mentioned_type": "bot" if mention.is_bot else "user",
        "name": mention.name,
        "tenant_key": app.tenant_key,
    }


def message_received(app: App, chat: Chat, sender: Person, message: Message) -> Json:
    """`im.message.receive_v1`. Ids a message does not have are absent, not null."""
    body: Json = {"message_id": message.message_id}
    if message.root_id:
        body["root_id"] = message.root_id
    if message.parent_id:
        body["parent_id"] = message.parent_id
    body |= {
        "create_time": str(message.created_ms),
        "update_time": str(message.updated_ms),
        "chat_id": message.chat_id,
    }
    if message.thread_id:
        body["thread_id"] = message.thread_id
    body |= {"chat_type": chat.wire_type, "message_type": message.msg_type, "content": wire_content(message)}
    if message.mentions:
        body["mentions"] = [_mention(mention, app) for mention in message.mentions]
    locale = "zh_CN" if sender.language == "zh" else "en_US"
    body["user_agent"] = f"Mozilla/5.0 (Macintosh) Lark/7.61.4 LarkLocale/{locale}"
    return {
        "sender": {"sender_id": _user(sender), "sender_type": "user", "tenant_key": app.tenant_key},
        "message": body,
    }


def message_recalled(message: Message, *, now_ms: int) -> Json:
    """`im.message.recalled_v1`."""
    return {
        "message_id": message.message_id,
        "chat_id": message.chat_id,
        "recall_time": str(now_ms),
        "recall_type": "message_owner",
    }


def reaction_changed(person: Person, message: Message, emoji: str, *, now_ms: int) -> Json:
    """`im.message.reaction.created_v1` and `.deleted_v1`: no chat_id, and app_id only for apps."""
    return {
        "message_id": message.message_id,
        "reaction_type": {"emoji_type": emoji},
        "operator_type": "user",
        "user_id": _user(person),
        "action_time": str(now_ms),
    }


def card_action(app: App, person: Person, message: Message, action: Json, *, token: str) -> Json:
    """`card.action.trigger`; the operator's user_id is usually missing, so it is here."""
    return {
        "operator": {"tenant_key": app.tenant_key, "open_id": person.open_id, "union_id": person.union_id},
        "token": token,
        "action": action,
        "host": "im_message",
        "context": {"open_message_id": message.message_id, "open_chat_id": message.chat_id},
    }
