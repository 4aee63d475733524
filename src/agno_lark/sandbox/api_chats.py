"""im/v1 chats and contact/v3 users (payloads/responses/chat_*.json, contact_users_batch.json)."""

from agno_lark.sandbox.calls import Answer, Call, Routes
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Chat, Json, Person
from agno_lark.sandbox.refusals import Refused

__all__ = ["register"]


def register(routes: Routes) -> None:
    """feishu.md section 4."""
    routes.add("GET", "/open-apis/im/v1/chats", "chat.list")(_list)
    routes.add("GET", "/open-apis/im/v1/chats/:chat_id", "chat.get")(_get)
    routes.add("GET", "/open-apis/im/v1/chats/:chat_id/members", "chat.members")(_members)
    routes.add("GET", "/open-apis/im/v1/chats/:chat_id/members/bots", "chat.bots")(_bots)
    routes.add("GET", "/open-apis/contact/v3/users/batch", "user.batch")(_users)
    routes.add("POST", "/open-apis/contact/v3/users/basic_batch", "user.basic_batch")(_names)
    routes.add("GET", "/open-apis/contact/v3/users/:user_id", "user.get")(_user)


def _chat(feishu: LocalFeishu, call: Call) -> Chat:
    chat_id = call.params["chat_id"]
    chat = feishu.world.chats.get(chat_id)
    if chat is None:
        raise Refused(232006, f"chat_id is invalid: {chat_id}")
    if not chat.has_bot:
        raise Refused(232011, "The operator is not in the chat.")
    return chat


def _get(feishu: LocalFeishu, call: Call) -> Answer:
    """`chat_mode` is the only place where a topic group says so."""
    chat = _chat(feishu, call)
    tenant = feishu.world.app.tenant_key
    if chat.mode == "p2p":
        data: Json = {"avatar": "", "name": "", "description": "", "chat_mode": "p2p", "owner_id_type": "open_id"}
        data |= {"owner_id": chat.members[0], "external": False, "tenant_key": tenant, "chat_status": "normal"}
        return Answer.data(data)
    data = {
        "avatar": "",
        "name": chat.name,
        "description": "",
        "i18n_names": {"zh_cn": chat.name, "en_us": chat.name},
        "add_member_permission": "all_members",
        "share_card_permission": "allowed",
        "at_all_permission": "all_members",
        "edit_permission": "all_members",
        "owner_id_type": "open_id",
        "owner_id": chat.members[0],
        "user_manager_id_list": [],
        "bot_manager_id_list": [],
        "chat_mode": chat.mode,
        "chat_type": "private",
        "chat_tag": "inner",
        "join_message_visibility": "all_members",
        "leave_message_visibility": "all_members",
        "membership_approval": "no_approval_required",
        "moderation_permission": "all_members",
        "external": False,
        "tenant_key": tenant,
        "user_count": str(len(chat.members)),
        "bot_count": "1",
        "chat_status": "normal",
    }
    if chat.mode == "group":
        data["group_message_type"] = "chat"
    return Answer.data(data)


def _list(feishu: LocalFeishu, call: Call) -> Answer:
    """The groups the bot is in; direct chats are not listed."""
    tenant = feishu.world.app.tenant_key
    items = [
        {
            "chat_id": chat.chat_id,
            "avatar": "",
            "name": chat.name,
            "description": "",
            "owner_id": chat.members[0],
            "owner_id_type": "open_id",
            "external": False,
            "tenant_key": tenant,
            "chat_status": "normal",
        }
        for chat in feishu.world.chats.values()
        if chat.mode != "p2p" and chat.has_bot
    ]
    return Answer.data({"items": items, "page_token": "", "has_more": False})


def _members(feishu: LocalFeishu, call: Call) -> Answer:
    """People only: neither items nor total count bots."""
    chat = _chat(feishu, call)
    kind = call.ask("member_id_type", "open_id")
    if kind not in ("open_id", "union_id", "user_id"):
        raise Refused(99992402, "field validation failed: member_id_type")
    people = [feishu.world.person(open_id) for open_id in chat.members]
    items = [
        {
            "member_id_type": kind,
            "member_id": getattr(person, kind),
            "name": person.name,
            "tenant_key": feishu.world.app.tenant_key,
        }
        for person in people
    ]
    return Answer.data({"items": items, "page_token": "", "has_more": False, "member_total": len(items)})


def _bots(feishu: LocalFeishu, call: Call) -> Answer:
    _chat(feishu, call)
    app = feishu.world.app
    return Answer.data({"items": [{"bot_id": app.bot_open_id, "bot_name": app.bot_name}]})


def _user_json(person: Person) -> Json:
    return {
        "union_id": person.union_id,
        "user_id": person.user_id,
        "open_id": person.open_id,
        "name": person.name,
        "en_name": person.name if person.language == "en" else "",
        "nickname": "",
        "email": "",
        "mobile_visible": True,
        "gender": 0,
        "avatar": {"avatar_72": "", "avatar_240": "", "avatar_640": "", "avatar_origin": ""},
        "status": {
            "is_frozen": False,
            "is_resigned": False,
            "is_activated": True,
            "is_exited": False,
            "is_unjoin": False,
        },
    }


def _found(feishu: LocalFeishu, ids: list[str], kind: str) -> list[Person]:
    if kind not in ("open_id", "union_id", "user_id") or not ids or len(ids) > 50:
        raise Refused(40001, "param is invalid")
    wanted = set(ids)
    return [person for person in feishu.world.people if getattr(person, kind) in wanted]


def _users(feishu: LocalFeishu, call: Call) -> Answer:
    """Unknown ids are left out without a word; with nobody left, items is absent."""
    found = _found(feishu, list(call.query.get("user_ids", [])), call.ask("user_id_type", "open_id"))
    return Answer.data({"items": [_user_json(person) for person in found]} if found else {})


def _user(feishu: LocalFeishu, call: Call) -> Answer:
    found = _found(feishu, [call.params["user_id"]], call.ask("user_id_type", "open_id"))
    if not found:
        raise Refused(41050, "no user authority error")
    return Answer.data({"user": _user_json(found[0])})


def _names(feishu: LocalFeishu, call: Call) -> Answer:
    ids = call.body.get("user_ids")
    if not isinstance(ids, list) or len(ids) > 10:
        raise Refused(40001, "param is invalid")
    kind = call.ask("user_id_type", "open_id")
    users = [
        {
            "user_id": getattr(person, kind),
            "name": person.name,
            "i18n_name": {"zh_cn": person.name, "ja_jp": "", "en_us": person.name},
        }
        for person in _found(feishu, [str(one) for one in ids], kind)
    ]
    return Answer.data({"users": users})
