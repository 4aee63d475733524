"""What a message says, as HTML: text, posts, pictures, files, cards, and a chip for every other kind."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from agno_lark.sandbox.page.cards import draw_card
from agno_lark.sandbox.page.cards.pen import items
from agno_lark.sandbox.page.emoji import emoji
from agno_lark.sandbox.page.html import Piece, el, join, lines, safe_url
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.markdown import markdown
from agno_lark.sandbox.page.scene import Scene
from agno_lark.sandbox.page.tags import TAG, closing, mention, opening, read_tag
from agno_lark.sandbox.records import Json, Mention, Message

__all__ = ["draw_body", "draw_file"]

KEY = re.compile(r"@_(?:user_\d+|all)")
TEXT_TAGS = ("b", "i", "u", "s", "at", "a")
STYLES = {"bold": "b", "italic": "i", "underline": "u", "lineThrough": "s", "strikethrough": "s", "codeInline": "code"}
KINDS = {
    "audio": ("voice", "语音", "Voice message"),
    "media": ("video", "视频", "Video"),
    "sticker": ("emoji", "表情包", "Sticker"),
    "merge_forward": ("chat", "合并转发的消息", "Forwarded messages"),
    "share_chat": ("group", "群名片", "A shared group"),
    "share_user": ("member", "个人名片", "A shared contact"),
    "location": ("board", "位置", "Location"),
    "system": ("info", "系统消息", "System message"),
    "todo": ("todo", "任务", "Task"),
    "folder": ("folder", "文件夹", "Folder"),
}


def draw_body(message: Message, card: Json | None, scene: Scene, *, streaming: bool = False) -> Markup:
    """The inside of a message's bubble; `card` is the card as it is now, for cards."""
    if card is not None:
        return draw_card(card, scene, streaming=streaming)
    if message.msg_type == "text":
        return el("div", {"class": "text"}, _text(message, scene))
    if message.msg_type == "post":
        return _post(message, scene)
    if message.msg_type == "image":
        return _picture(str(message.content.get("image_key", "")), scene)
    if message.msg_type == "file":
        key = str(message.content.get("file_key", ""))
        held = message.resources.get(key)
        return draw_file(key, str(message.content.get("file_name") or key), len(held.data) if held else None, scene)
    name, zh, en = KINDS.get(message.msg_type, ("file", message.msg_type, message.msg_type))
    return el("div", {"class": "chip"}, draw_icon(name), zh if scene.language == "zh" else en)


def draw_file(key: str, name: str, size: int | None, scene: Scene) -> Markup:
    """A file to take away."""
    address = scene.picture(key)
    about: list[Piece] = [
        el("span", {"class": "file-icon"}, draw_icon("file")),
        el(
            "span",
            {"class": "file-about"},
            el("span", {"class": "file-name"}, name),
            el("span", {"class": "file-size"}, _size(size)) if size is not None else None,
        ),
    ]
    if address is None:
        return el("div", {"class": "file"}, *about)
    return el("a", {"class": "file", "href": address, "download": name}, *about, draw_icon("download"))


def _size(size: int) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1024 or unit == "MB":
            return f"{size} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size = size // 1024 if size % 1024 == 0 else size / 1024  # type: ignore[assignment]
    return ""


def _picture(key: str, scene: Scene) -> Markup:
    address = scene.picture(key)
    if address is None:
        return el("span", {"class": "no-image", "role": "img", "aria-label": "image"}, draw_icon("image"))
    label = "图片" if scene.language == "zh" else "Picture"
    shown = el("img", {"class": "sent-image", "src": address, "alt": label})
    return el("button", {"type": "button", "class": "zoom", "data-zoom": address, "aria-label": label}, shown)


def _text(message: Message, scene: Scene) -> Markup:
    """A person's text holds mention keys; the bot's is drawn from what it sent, styles and all."""
    if message.sender_is_bot:
        return _styled(str(message.sent.get("text", "")), scene)
    return _keyed(str(message.content.get("text", "")), message.mentions, scene)


def _keyed(text: str, mentions: Sequence[Mention], scene: Scene) -> Markup:
    known = {each.key: each for each in mentions}
    pieces: list[Piece] = []
    start = 0
    for found in KEY.finditer(text):
        pieces.append(lines(text[start : found.start()]))
        start = found.end()
        who = known.get(found.group())
        if found.group() == "@_all":
            pieces.append(mention("all", scene))
        elif who is not None:
            pieces.append(el("span", {"class": "mention"}, f"@{who.name}"))
        else:
            pieces.append(found.group())
    pieces.append(lines(text[start:]))
    return join(pieces)


def _styled(text: str, scene: Scene) -> Markup:
    """A text with the few tags Feishu takes in text messages; any other tag is shown as it was written."""
    pieces: list[Piece] = []
    waiting: list[tuple[str, str]] = []
    start = 0
    for found in TAG.finditer(text):
        tag = read_tag(found.group())
        if tag is None or tag.name not in TEXT_TAGS:
            continue
        if not (waiting and waiting[-1][1] == ""):
            pieces.append(lines(text[start : found.start()]))
        start = found.end()
        if tag.ends:
            if waiting and waiting[-1][0] == tag.name:
                pieces.append(closing(waiting.pop()[1]))
            continue
        html, end = opening(tag, scene)
        pieces.append(html)
        if end is not None:
            waiting.append((tag.name, end))
    pieces.append(lines(text[start:]))
    pieces.extend(closing(end) for _, end in reversed(waiting))
    return join(pieces)


def _post(message: Message, scene: Scene) -> Markup:
    post: Mapping[str, Any] = message.sent if message.sender_is_bot else message.content
    if "content" not in post:
        bodies = [body for body in post.values() if isinstance(body, Mapping) and "content" in body]
        mine = post.get(scene.locale)
        post = mine if isinstance(mine, Mapping) else bodies[0] if bodies else {}
    rows = post.get("content")
    title = str(post.get("title") or "")
    drawn = []
    for row in rows if isinstance(rows, list) else []:
        nodes = row if isinstance(row, list) else [row]
        drawn.append(el("div", {"class": "post-row"}, *(_node(node, message, scene) for node in items(nodes))))
    return el("div", {"class": "post"}, el("h3", {"class": "post-title"}, title) if title else None, *drawn)


def _node(node: Mapping[str, Any], message: Message, scene: Scene) -> Markup:
    tag = node.get("tag")
    text = str(node.get("text") or "")
    if tag == "text":
        return _style(_keyed(text, message.mentions, scene), node)
    if tag == "a":
        address = safe_url(node.get("href"))
        if address is None:
            return _style(lines(text), node)
        return _style(
            el("a", {"href": address, "target": "_blank", "rel": "noopener noreferrer"}, text or address), node
        )
    if tag == "at":
        who = str(node.get("user_id") or "")
        return _keyed(who, message.mentions, scene) if KEY.fullmatch(who) else mention(who, scene)
    if tag == "img":
        return _picture(str(node.get("image_key", "")), scene)
    if tag == "emotion":
        return join([emoji(str(node.get("emoji_type", "")))])
    if tag == "hr":
        return Markup("<hr>")
    if tag == "md":
        return el("div", {"class": "md"}, markdown(text, scene))
    if tag == "code_block":
        return el("div", {"class": "md-code"}, el("pre", {"tabindex": "0"}, el("code", None, text)))
    return el("span", {"class": "chip"}, draw_icon("file"), text or str(tag))


def _style(inner: Markup, node: Mapping[str, Any]) -> Markup:
    marks = node.get("style")
    for mark in marks if isinstance(marks, list) else []:
        if isinstance(mark, str) and mark in STYLES:
            inner = el(STYLES[mark], None, inner)
    return inner
