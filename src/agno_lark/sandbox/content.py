"""From what was sent to what is stored and shown: mention keys, posts without their wrapper, a card's visible text.

Source of the rules: payloads/README.md, "Received is not sent".
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from agno_lark.sandbox.records import Json, Mention

__all__ = ["degraded_card", "received_post", "received_text", "shown_post", "shown_text", "visible_card_text"]

type MentionOf = Callable[[str, str], Mention | None]
"""(open_id or app id, key) -> the mention, or None for somebody unknown here."""

_AT = re.compile(
    r"<at\s+(?:user_id|id)=\"?([^\s\">]+)\"?[^>]*>(.*?)</at>|<at\s+(?:user_id|id)=\"?([^\s\">]+)\"?\s*/>", re.S
)
_STYLE = re.compile(r"</?(?:b|i|u|s)>")
_TEXTS = (
    "content",
    "title",
    "subtitle",
    "text",
    "header",
    "label",
    "placeholder",
    "options",
    "columns",
    "rows",
    "elements",
)


def _keyed(text: str, mentions: list[Mention], mention_of: MentionOf) -> str:
    """Replace `<at>` tags by keys, appending to `mentions`; an unknown person's tag becomes `@name`."""

    def key(match: re.Match[str]) -> str:
        who = match.group(1)
        if who == "all":
            return "@_all"
        for known in mentions:
            if known.open_id == who:
                return known.key
        mention = mention_of(who, f"@_user_{len(mentions) + 1}")
        if mention is None:
            return f"@{match.group(2) or who}"
        mentions.append(mention)
        return mention.key

    return _AT.sub(key, text)


def received_text(sent: Json, mention_of: MentionOf) -> tuple[Json, list[Mention]]:
    """The stored form of a text message: `<at>` tags are keys, b/i/u/s tags are gone."""
    mentions: list[Mention] = []
    text = _keyed(str(sent.get("text", "")), mentions, mention_of)
    return {**sent, "text": _STYLE.sub("", text)}, mentions


def received_post(sent: Json, mention_of: MentionOf) -> tuple[Json, list[Mention]]:
    """The stored form of a post: one locale, md turned into text, mentions as keys."""
    body = sent
    if "content" not in sent:
        locales = [value for value in sent.values() if isinstance(value, dict) and "content" in value]
        body = locales[0] if locales else {"title": "", "content": []}
    mentions: list[Mention] = []
    rows: list[list[Json]] = []
    for row in body.get("content") or []:
        kept: list[Json] = []
        for node in row if isinstance(row, list) else []:
            if not isinstance(node, dict):
                continue
            if node.get("tag") == "at":
                who = str(node.get("user_id", ""))
                key = _keyed(f'<at user_id="{who}"></at>', mentions, mention_of)
                name = next((m.name for m in mentions if m.key == key), "")
                kept.append({"tag": "at", "user_id": key, "user_name": name, "style": node.get("style", [])})
            elif node.get("tag") == "md":
                text = _keyed(str(node.get("text", "")), mentions, mention_of)
                kept.append({"tag": "text", "text": text, "style": []})
            elif node.get("tag") == "text":
                kept.append({**node, "style": node.get("style", [])})
            else:
                kept.append(dict(node))
        rows.append(kept)
    stored = {"title": str(body.get("title", "")), "content": rows}
    return {**{k: v for k, v in body.items() if k not in ("title", "content")}, **stored}, mentions


def shown_text(text: str, mentions: list[Mention]) -> str:
    """Keys replaced by `@name`, longest key first: `@_user_10` starts with `@_user_1`."""
    for mention in sorted(mentions, key=lambda m: -len(m.key)):
        text = text.replace(mention.key, f"@{mention.name}")
    return text.replace("@_all", "@all")


def shown_post(content: Json, mentions: list[Mention]) -> str:
    """A post as plain lines, title first."""
    lines = [str(content.get("title") or "")]
    for row in content.get("content") or []:
        parts = []
        for node in row:
            if node.get("tag") == "at":
                parts.append(str(node.get("user_id", "")))
            elif node.get("tag") == "img":
                parts.append("[image]")
            elif node.get("tag") in ("media", "emotion"):
                parts.append(f"[{node.get('emoji_type', 'media')}]")
            elif node.get("tag") == "hr":
                parts.append("---")
            else:
                parts.append(str(node.get("text", "")))
        lines.append("".join(parts))
    return shown_text("\n".join(line for line in lines if line), mentions)


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        if node:
            yield node
    elif isinstance(node, list):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, dict):
        if node.get("tag") == "table":
            yield from _table_texts(node)
            return
        for name in _TEXTS:
            if name in node:
                yield from _texts(node[name])


def _table_texts(table: Json) -> Iterator[str]:
    columns = [c for c in table.get("columns") or [] if isinstance(c, dict)]
    yield from (str(c.get("display_name") or c.get("name") or "") for c in columns)
    for row in table.get("rows") or []:
        for column in columns:
            cell = row.get(column.get("name")) if isinstance(row, dict) else None
            if isinstance(cell, list):
                yield " ".join(str(x.get("text", x) if isinstance(x, dict) else x) for x in cell)
            elif cell is not None:
                yield str(cell)


def visible_card_text(card: Json) -> str:
    """All text of a card a person can read (folded panels included), one piece a line, from top to bottom."""
    header = card.get("header") or {}
    head = [header.get(name) for name in ("title", "subtitle", "text_tag_list") if name in header]
    body = (card.get("body") or {}).get("elements") or card.get("elements") or []
    return "\n".join([*_texts(head), *_texts(body)])


def degraded_card(card: Json) -> Json:
    """What the API returns for a card unless asked for the sent JSON: 2.0 cards become a hint to upgrade."""
    if card.get("schema") == "2.0" or card.get("type") == "card":
        return {"title": None, "elements": [[{"tag": "text", "text": "请升级至最新版本客户端，以查看内容"}]]}
    title = ((card.get("header") or {}).get("title") or {}).get("content")
    rows = [[{"tag": "text", "text": text}] for text in _texts(card.get("elements") or [])]
    return {"title": title, "elements": rows}
