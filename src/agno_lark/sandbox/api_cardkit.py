"""cardkit/v1/cards and interactive/v1/card/update: how a bot makes and changes its cards."""

import json
from typing import Any

from agno_lark.sandbox import cardkit, elements
from agno_lark.sandbox.calls import Answer, Call, Routes
from agno_lark.sandbox.cards import refusal
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.sandbox.records import Json
from agno_lark.sandbox.refusals import NoAnswer, Refused

__all__ = ["register"]

DELAYED_BYTES = 100 * 1024


def register(routes: Routes) -> None:
    """cards/README.md, CardKit and Callback."""
    base = "/open-apis/cardkit/v1/cards"
    routes.add("POST", base, "card.create")(_create)
    routes.add("PUT", f"{base}/:card_id", "card.update")(_update)
    routes.add("PATCH", f"{base}/:card_id/settings", "card.settings")(_settings)
    routes.add("POST", f"{base}/:card_id/batch_update", "card.batch_update")(_batch)
    routes.add("POST", f"{base}/:card_id/elements", "card.element.create")(_add)
    routes.add("PUT", f"{base}/:card_id/elements/:element_id", "card.element.update")(_replace)
    routes.add("PATCH", f"{base}/:card_id/elements/:element_id", "card.element.patch")(_patch)
    routes.add("DELETE", f"{base}/:card_id/elements/:element_id", "card.element.delete")(_delete)
    routes.add("PUT", f"{base}/:card_id/elements/:element_id/content", "card.element.content")(_content)
    routes.add("POST", "/open-apis/interactive/v1/card/update", "card.delayed_update")(_delayed)


def _parsed(value: Any, name: str, code: int = 10002) -> Any:
    """JSON inside a string, as CardKit wants it. Raises Refused."""
    if not isinstance(value, str):
        raise Refused(10002, f"invalid request parameter: {name} must be a JSON string")
    try:
        return json.loads(value)
    except ValueError:
        raise Refused(code, f"invalid request parameter: {name} is not JSON") from None


def _create(feishu: LocalFeishu, call: Call) -> Answer:
    if call.body.get("type") != "card_json":
        raise Refused(10002, "invalid request parameter: type must be card_json")
    card = cardkit.create(feishu, cardkit.checked(feishu, _parsed(call.body.get("data"), "data", 200220), 200220))
    return Answer.data({"card_id": card.card_id})


def _begin(feishu: LocalFeishu, call: Call, kind: str) -> cardkit.Change:
    return cardkit.begin(feishu, call.params["card_id"], kind, call.body)


def _update(feishu: LocalFeishu, call: Call) -> Answer:
    """The whole card anew, its streaming mode included: a config that does not open it closes it."""
    change = _begin(feishu, call, "update")
    card = call.body.get("card")
    if not isinstance(card, dict) or card.get("type") != "card_json":
        raise Refused(10002, "invalid request parameter: card is {type: card_json, data}")
    new = cardkit.checked(feishu, _parsed(card.get("data"), "data", 300121), 300121)
    was_open = feishu.world.is_streaming(change.card)
    cardkit.commit(feishu, change, json=new)
    if not (was_open and (new.get("config") or {}).get("streaming_mode") is True):
        cardkit.set_streaming(feishu, change.card)
    return Answer.data({})


def _settings(feishu: LocalFeishu, call: Call) -> Answer:
    change = _begin(feishu, call, "settings")
    settings = _parsed(call.body.get("settings"), "settings")
    new = cardkit.checked(feishu, elements.merge_settings(change.card.json, settings), 300122)
    _apply_settings(feishu, change, new, settings)
    return Answer.data({})


def _apply_settings(feishu: LocalFeishu, change: cardkit.Change, new: Json, settings: Json) -> None:
    opens_or_closes = "streaming_mode" in (settings.get("config") or {})
    change.card.json = new
    if opens_or_closes:
        cardkit.set_streaming(feishu, change.card)
    cardkit.commit(feishu, change, text=json.dumps(settings, ensure_ascii=False))


def _structural(
    feishu: LocalFeishu, change: cardkit.Change, new: Json, code: int, element_id: str, text: str
) -> Answer:
    cardkit.commit(feishu, change, json=cardkit.checked(feishu, new, code), element_id=element_id, text=text)
    return Answer.data({})


def _add(feishu: LocalFeishu, call: Call) -> Answer:
    change = _begin(feishu, call, "add_elements")
    nodes = elements.element_list(_parsed(call.body.get("elements"), "elements"))
    target = str(call.body.get("target_element_id") or "")
    new = elements.add(change.card.json, str(call.body.get("type")), target, nodes)
    return _structural(feishu, change, new, 300315, target, f"{len(nodes)} added")


def _replace(feishu: LocalFeishu, call: Call) -> Answer:
    change = _begin(feishu, call, "update_element")
    element_id = call.params["element_id"]
    new = elements.replace(change.card.json, element_id, _parsed(call.body.get("element"), "element"))
    return _structural(feishu, change, new, 300313, element_id, "replaced")


def _patch(feishu: LocalFeishu, call: Call) -> Answer:
    change = _begin(feishu, call, "partial_update_element")
    element_id = call.params["element_id"]
    new = elements.patch(change.card.json, element_id, _parsed(call.body.get("partial_element"), "partial_element"))
    return _structural(feishu, change, new, 300313, element_id, "patched")


def _delete(feishu: LocalFeishu, call: Call) -> Answer:
    change = _begin(feishu, call, "delete_elements")
    element_id = call.params["element_id"]
    new = elements.delete(change.card.json, [element_id])
    return _structural(feishu, change, new, 300314, element_id, "deleted")


def _content(feishu: LocalFeishu, call: Call) -> Answer:
    change = _begin(feishu, call, "content")
    cardkit.stream_text(feishu, change, call.params["element_id"], call.body.get("content"))
    return Answer.data({})


def _batch(feishu: LocalFeishu, call: Call) -> Answer:
    """Several changes, all or none; inside, params are objects."""
    change = _begin(feishu, call, "batch_update")
    actions = _parsed(call.body.get("actions"), "actions")
    if not isinstance(actions, list) or not actions:
        raise Refused(10002, "invalid request parameter: actions must be a list")
    new, settings = change.card.json, dict[str, Any]()
    for action in actions:
        params = action.get("params") if isinstance(action, dict) else None
        if not isinstance(params, dict):
            raise Refused(10002, "invalid request parameter: an action is {action, params}")
        match action.get("action"):
            case "partial_update_setting":
                new = elements.merge_settings(new, params.get("settings"))
                settings |= params.get("settings") or {}
            case "add_elements":
                nodes = elements.element_list(params.get("elements"))
                new = elements.add(new, str(params.get("type")), str(params.get("target_element_id") or ""), nodes)
            case "delete_elements":
                ids = params.get("element_ids")
                if not isinstance(ids, list):
                    raise Refused(10002, "invalid request parameter: element_ids must be a list")
                new = elements.delete(new, [str(one) for one in ids])
            case "partial_update_element":
                new = elements.patch(new, str(params.get("element_id")), params.get("partial_element"))
            case "update_element":
                new = elements.replace(new, str(params.get("element_id")), params.get("element"))
            case unknown:
                raise Refused(10002, f"invalid request parameter: unknown action {unknown!r}")
    _apply_settings(feishu, change, cardkit.checked(feishu, new, 300121), settings)
    return Answer.data({})


def _delayed(feishu: LocalFeishu, call: Call) -> Answer:
    """A card by a click's token: 30 minutes, two uses; before the click is answered it will be undone."""
    token = call.body.get("token")
    card = call.body.get("card")
    if not isinstance(token, str) or not token.startswith("c-"):
        raise Refused(300020, "token format error")
    known = feishu.world.clicks.tokens.get(token)
    if known is None or known.expires_ms <= feishu.world.clock.now_ms():
        raise Refused(300030, "token expired")
    if known.uses_left <= 0:
        raise Refused(300040, "token used too often")
    if not isinstance(card, dict):
        raise Refused(11311, "card format invalid")
    if len(json.dumps(card, ensure_ascii=False).encode("utf-8", "surrogatepass")) > DELAYED_BYTES:
        raise Refused(100000, "card over 100 KB")
    message = feishu.world.messages[known.message_id]
    if message.recalled:
        raise Refused(200000, "card was recalled")
    found = refusal({key: value for key, value in card.items() if key != "open_ids"}, strict=feishu.strict_cards)
    if found is not None:
        raise Refused(
            11311, f"card format invalid, ErrCode: {found.code}; ErrPath: {found.path}; ErrMsg: {found.message}"
        )
    try:
        feishu.world.clicks.replace(message, card, kind="delayed_update")
    except NoAnswer as error:
        raise Refused(11311, str(error)) from None
    known.uses_left -= 1
    return Answer(body={"code": 0, "msg": "ok"})
