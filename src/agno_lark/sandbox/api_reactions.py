"""im/v1 reactions (payloads/responses/reaction_*.json)."""

import re

from agno_lark.sandbox.calls import Answer, Call, Routes
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Json, Message, Reaction
from agno_lark.sandbox.refusals import Refused

__all__ = ["register"]

_EMOJI = re.compile(r"^[A-Za-z][A-Za-z0-9_]{0,31}$")


def register(routes: Routes) -> None:
    """feishu.md section 4."""
    base = "/open-apis/im/v1/messages/:message_id/reactions"
    routes.add("POST", base, "reaction.create")(_create)
    routes.add("GET", base, "reaction.list")(_list)
    routes.add("DELETE", f"{base}/:reaction_id", "reaction.delete")(_delete)


def _message(feishu: LocalFeishu, call: Call) -> Message:
    message = feishu.world.messages.get(call.params["message_id"])
    if message is None or message.recalled:
        raise Refused(231003, "The message is not found or was recalled.")
    return message


def _reaction_json(feishu: LocalFeishu, reaction: Reaction) -> Json:
    is_app = reaction.operator_open_id == feishu.world.app.app_id
    return {
        "reaction_id": reaction.reaction_id,
        "operator": {"operator_id": reaction.operator_open_id, "operator_type": "app" if is_app else "user"},
        "action_time": str(feishu.world.clock.now_ms()),
        "reaction_type": {"emoji_type": reaction.emoji},
    }


def _create(feishu: LocalFeishu, call: Call) -> Answer:
    """The same emoji a second time by the same operator answers the first reaction."""
    message = _message(feishu, call)
    kind = call.body.get("reaction_type")
    emoji = kind.get("emoji_type") if isinstance(kind, dict) else None
    if not isinstance(emoji, str) or not _EMOJI.match(emoji):
        raise Refused(231001, "The reaction type is invalid.")
    operator = feishu.world.app.app_id
    for reaction in message.reactions:
        if reaction.emoji == emoji and reaction.operator_open_id == operator:
            return Answer.data(_reaction_json(feishu, reaction))
    reaction = Reaction(feishu.world.new_id("re_"), emoji, operator)
    message.reactions.append(reaction)
    feishu.world.tell("reaction", message)
    return Answer.data(_reaction_json(feishu, reaction))


def _delete(feishu: LocalFeishu, call: Call) -> Answer:
    message = _message(feishu, call)
    reaction_id = call.params["reaction_id"]
    for reaction in message.reactions:
        if reaction.reaction_id == reaction_id:
            if reaction.operator_open_id != feishu.world.app.app_id:
                raise Refused(231007, "The operator did not add this reaction.")
            message.reactions.remove(reaction)
            feishu.world.tell("reaction", message)
            return Answer.data(_reaction_json(feishu, reaction))
    raise Refused(231011, "The reaction_id is invalid.")


def _list(feishu: LocalFeishu, call: Call) -> Answer:
    message = _message(feishu, call)
    wanted = call.ask("reaction_type")
    items = [_reaction_json(feishu, r) for r in message.reactions if not wanted or r.emoji == wanted]
    return Answer.data({"items": items, "has_more": False, "page_token": ""})
