"""The plain text a person meant, out of Feishu's `text` and `post` contents and the mentions beside them. Pure."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agno_lark.feishu.events import Mention
from agno_lark.feishu.jsontext import read_object

__all__ = ["MeantText", "meant_text"]

# The whole token counts: `@_user_1` is no prefix of `@_user_10` (cases.md 3), nor `@_all` of `@_allies`.
_TOKEN = re.compile(r"@_user_\d+|@_all(?![A-Za-z0-9_])")
# Every part is bounded, so that a long message full of `<at` costs no more than its length.
_AT_TAG = re.compile(
    r"<at\s{1,4}(?:user_id|open_id|id)\s?=\s?[\"']?([^\s\"'<>]{1,128})[\"']?\s{0,4}>([^<]{0,200})</at>"
)
# Stands where the bot's own name was, until the spaces around it are settled. Never part of a person's words: NULs are
# taken out first.
_OWN = "\0"
_BLANK = " \t\u00a0\u3000"
_CLOSING = tuple(",.;:!?)]}，。；：！？、）】")
_EVERYBODY = {"@_all", "all"}


@dataclass(frozen=True, kw_only=True, slots=True)
class MeantText:
    """`text` without the bot's own mention and with others as `@Name`; whom the message calls."""

    text: str = field(repr=False)
    mentions_bot: bool
    mentions_all: bool


@dataclass(kw_only=True, slots=True)
class _Names:
    """Who is behind each mention key, and who was met on the way."""

    by_key: Mapping[str, Mention]
    by_id: Mapping[str, Mention]
    bot_ids: frozenset[str]
    met_bot: bool = False
    met_all: bool = False

    def replace(self, key: str, written: str = "") -> str:
        """What the text shows: `_OWN` for the bot, else `@Name`. `written`: the name the content gives."""
        if key in _EVERYBODY:
            self.met_all = True
            return "@all"
        mention = self.by_key.get(key) or self.by_id.get(key)
        ids = {key} if mention is None else {key, mention.open_id, mention.union_id}
        if ids & self.bot_ids:
            self.met_bot = True
            return _OWN
        name = written.strip().lstrip("@") or (_words(mention.name).lstrip("@") if mention is not None else "")
        return f"@{name}" if name else key


def meant_text(
    message_type: str, content: str, mentions: Iterable[Mention], *, bot_open_id: str, bot_union_id: str = ""
) -> MeantText:
    """Read a received message's content. Kinds other than text and post have no text here, but may mention.

    `bot_union_id` also finds the bot where another app's open_id is given for it (payloads/README.md). Content that is
    not the JSON it should be is taken as the words themselves.
    """
    known = tuple(mentions)
    names = _Names(
        by_key={mention.key: mention for mention in known},
        by_id={mention.open_id: mention for mention in known if mention.open_id},
        bot_ids=frozenset({bot_open_id, bot_union_id} - {""}),
    )
    text = _read(message_type, content.replace(_OWN, ""), names)
    # A mention may be in the list only: some posts leave it out of their rows (payloads: post_content_v2_md).
    listed_bot = any({mention.open_id, mention.union_id} & names.bot_ids for mention in known)
    listed_all = any(mention.key in _EVERYBODY for mention in known)
    return MeantText(
        text=_settle(text), mentions_bot=names.met_bot or listed_bot, mentions_all=names.met_all or listed_all
    )


def _read(message_type: str, content: str, names: _Names) -> str:
    if message_type not in {"text", "post"}:
        return ""
    try:
        body = read_object(content)
    except ValueError:
        return content
    if message_type == "post":
        return "\n".join(_post_lines(body, names))
    return _TOKEN.sub(lambda found: _replace_known(found[0], names), _words(body.get("text")))


def _replace_known(key: str, names: _Names) -> str:
    """A person can type `@_user_7` themselves: only what the mentions know is a mention."""
    return names.replace(key) if key in names.by_key or key in _EVERYBODY else key


def _post_lines(body: Mapping[str, Any], names: _Names) -> Iterator[str]:
    if "content" not in body and "content_v2" not in body and "files" not in body:
        # As sent, not as received: one body a language.
        body = next((value for value in body.values() if isinstance(value, dict)), {})
    title = _words(body.get("title")).strip()
    if title:
        yield title
    # The Markdown half keeps the lists and quotes that the flattened one loses.
    rows = body.get("content_v2") or body.get("content")
    for row in rows if isinstance(rows, list) else ():
        elements = row if isinstance(row, list) else [row]
        yield "".join(_element(element, names) for element in elements if isinstance(element, dict))
    files = body.get("files")
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict):
            yield f"[{'folder' if file.get('is_folder') is True else 'file'}: {_words(file.get('file_name'))}]"


def _element(element: Mapping[str, Any], names: _Names) -> str:
    text = _words(element.get("text"))
    match element.get("tag"):
        case "text":
            return html.unescape(text) if element.get("un_escape") is True else text
        case "a":
            href = _words(element.get("href"))
            return f"[{text}]({href})" if text and href and text != href else text or href
        case "at":
            return names.replace(_words(element.get("user_id")), _words(element.get("user_name")))
        case "md":
            return _AT_TAG.sub(lambda found: names.replace(found[1], found[2]), text)
        case "code_block":
            return f"```{_words(element.get('language')).lower()}\n{text}\n```"
        case "code":
            return f"`{text}`"
        case "emotion":
            return f":{_words(element.get('emoji_type'))}:"
        case "hr":
            return "---"
        case "img":
            return "[image]"
        case "media":
            return "[video]"
        case _:
            return text


def _words(value: Any) -> str:
    return value.replace(_OWN, "") if isinstance(value, str) else ""


def _settle(text: str) -> str:
    """Take out the places of the bot's own name, and the one blank too many that each leaves behind."""
    first, *others = text.split(_OWN)
    out = [first] if first else []
    for piece in others:
        before = out[-1] if out else "\n"
        if before.endswith("\n"):
            piece = piece.lstrip(_BLANK)
        elif not piece or piece.startswith("\n"):
            out[-1] = before.rstrip(_BLANK)
        elif before[-1] in _BLANK and piece[0] in _BLANK:
            piece = piece[1:]
        elif before[-1] in _BLANK and piece[0] in _CLOSING:
            out[-1] = before[:-1]
        if out and not out[-1]:
            out.pop()
        if piece:
            out.append(piece)
    return "".join(out).strip()
