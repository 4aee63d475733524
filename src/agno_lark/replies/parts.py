"""An answer's Markdown, made fit for cards: what Feishu would refuse is spelled otherwise, what is too long is split.

Pure. Limits: cards/README.md "Limits" (30 KB of serialised JSON a card; five tables, of which three are safe).
"""

import json
import re
from dataclasses import dataclass

from markdown_it import MarkdownIt

__all__ = ["PART_BYTES", "PART_TABLES", "closed", "json_bytes", "showable", "split_answer"]

PART_BYTES = 18_000  # of an answer's text in one card: leaves room for steps, reasoning and the frame
PART_TABLES = 3

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_IMAGE = re.compile(r"!(\[[^\]\n]*\]\((?!\s*<?img_)[^)\n]*\))")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LIKELY_TABLE = re.compile(r"(?m)^[^\n]*\|[^\n]*\n[ >]*\|?[ :]*-+[ :]*(\||$)")


def json_bytes(text: str) -> int:
    """Bytes the text takes inside serialised JSON, UTF-8, its quotes left out."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2


def showable(text: str) -> str:
    """The text as a card takes it: pictures by address become links (one alone would fail the whole card, 200570), and
    half characters, which are no Unicode text, become replacement characters. Code is left as it is."""
    text = _SURROGATES.sub("\ufffd", text)
    if "![" not in text:
        return text
    lines = text.split("\n")
    code = _fenced(lines)
    return "\n".join(line if is_code else _IMAGE.sub(r"\1", line) for line, is_code in zip(lines, code, strict=True))


def closed(text: str) -> str:
    """A text that may stop in the middle of a code fence, with that fence closed: for showing while it streams."""
    fence = _open_fence(text.split("\n"))
    return f"{text}\n{fence.marker}" if fence else text


def split_answer(text: str, *, most_bytes: int = PART_BYTES, most_tables: int = PART_TABLES) -> list[str]:
    """The text in parts for one card each, in order; at least one, maybe empty.

    Between blocks the text is cut as it stands, so that joining the parts gives it back; a code fence that has to be
    cut is closed and opened again, a table's head is repeated. Stable: the parts of a part are the part.
    """
    if json_bytes(text) <= most_bytes and len(_LIKELY_TABLE.findall(text)) <= most_tables:
        return [text]
    parts: list[str] = []
    current, size, tables = "", 0, 0
    for block in _blocks(text):
        for piece in block.cut(most_bytes):
            piece_size = json_bytes(piece)
            if current and (size + piece_size > most_bytes or tables + block.tables > most_tables):
                parts.append(current)
                current, size, tables = "", 0, 0
            current += piece
            size += piece_size
            tables += block.tables
    return [*parts, current] if current or not parts else parts


@dataclass(frozen=True, slots=True)
class _Fence:
    marker: str
    opening: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    """A top-level block with the blank lines behind it. `tables`: how many tables it holds."""

    kind: str
    text: str
    tables: int

    def cut(self, most_bytes: int) -> list[str]:
        if json_bytes(self.text) <= most_bytes:
            return [self.text]
        lines = self.text.splitlines(keepends=True)
        if self.kind == "fence" and (match := _FENCE.match(lines[0])):
            return _cut_lines(lines, most_bytes, head=lines[0], tail=f"{match[1]}\n")
        if self.kind == "table" and len(lines) > 2:
            return _cut_lines(lines, most_bytes, head="".join(lines[:2]), tail="")
        return _cut_lines(lines, most_bytes, head="", tail="")


def _blocks(text: str) -> list[_Block]:
    lines = text.splitlines(keepends=True)
    starts: list[tuple[int, str]] = []
    tables: dict[int, int] = {}
    for token in _MARKDOWN.parse(text):
        if token.map is None:
            continue
        if token.level == 0 and token.nesting >= 0 and (not starts or token.map[0] > starts[-1][0]):
            starts.append((token.map[0], token.type.removesuffix("_open")))
        if token.type == "table_open" and starts:
            tables[starts[-1][0]] = tables.get(starts[-1][0], 0) + 1
    if not starts or starts[0][0] > 0:
        starts.insert(0, (0, "paragraph"))
    ends = [start for start, _ in starts[1:]] + [len(lines)]
    return [
        _Block(kind=kind, text="".join(lines[start:end]), tables=tables.get(start, 0))
        for (start, kind), end in zip(starts, ends, strict=True)
    ]


def _cut_lines(lines: list[str], most_bytes: int, *, head: str, tail: str) -> list[str]:
    """Pieces of whole lines where they fit; `head` begins every piece but the first, `tail` ends all but the last."""
    room = max(most_bytes - json_bytes(head) - json_bytes(tail), most_bytes // 2)
    pieces: list[str] = []
    current, size = "", 0
    for line in lines:
        for chunk in _cut_line(line, room):
            chunk_size = json_bytes(chunk)
            if current and size + chunk_size > room:
                pieces.append(current)
                current, size = "", 0
            current += chunk
            size += chunk_size
    pieces.append(current)
    last = len(pieces) - 1
    return [
        (head if index else "") + piece + (_ended(piece, tail) if index < last else "")
        for index, piece in enumerate(pieces)
    ]


def _ended(piece: str, tail: str) -> str:
    return tail if not tail or piece.endswith("\n") else f"\n{tail}"


def _cut_line(line: str, room: int) -> list[str]:
    if json_bytes(line) <= room:
        return [line]
    step = max(1, room // 6)  # six bytes is the most one character takes in JSON, but for pairs of surrogates (4)
    return [line[start : start + step] for start in range(0, len(line), step)]


def _fenced(lines: list[str]) -> list[bool]:
    """For each line: does it belong to a code fence?"""
    inside: _Fence | None = None
    found: list[bool] = []
    for line in lines:
        was_inside = inside is not None
        inside = _after(inside, line)
        found.append(was_inside or inside is not None)
    return found


def _open_fence(lines: list[str]) -> _Fence | None:
    inside: _Fence | None = None
    for line in lines:
        inside = _after(inside, line)
    return inside


def _after(inside: _Fence | None, line: str) -> _Fence | None:
    match = _FENCE.match(line)
    if inside is None:
        return _Fence(match[1], line) if match and not (match[1][0] == "`" and "`" in match[2]) else None
    closes = match and match[1][0] == inside.marker[0] and len(match[1]) >= len(inside.marker) and not match[2].strip()
    return None if closes else inside
