"""An answer's Markdown, made fit for cards: what Feishu would refuse is spelled otherwise, what is too long is split.

Pure. Limits: cards/README.md "Limits" (30 KB of serialised JSON a card; five tables, of which three are safe).
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt

__all__ = [
    "PART_BYTES",
    "PART_TABLES",
    "closed",
    "count_tables",
    "first_part",
    "json_bytes",
    "showable",
    "split_answer",
]

PART_BYTES = 17_000  # of an answer's text in one card: leaves room for steps, reasoning and the frame
PART_TABLES = 3

# Blocks alone are asked for: reading inline marks as well takes half a second for 20 KB of brackets.
_MARKDOWN = MarkdownIt("commonmark").enable("table").disable("inline")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_encode = json.JSONEncoder(ensure_ascii=False).encode  # made once: it is asked for every line of an answer
_MENTION = re.compile(r"<(?=/?at\b)", re.IGNORECASE)
_SURROGATES = re.compile("[\ud800-\udfff]")


def json_bytes(text: str) -> int:
    """Bytes the text takes inside serialised JSON, UTF-8, its quotes left out."""
    return len(_encode(text).encode()) - 2


def showable(text: str) -> str:
    """The text as a card takes it. Code is left as it is; elsewhere pictures by address become links (one alone would
    fail the whole card, 200570), and Feishu's own mention tag is shown as it is written: an agent's words, or what
    somebody had it repeat, shall not ring everybody. Half characters, which are no Unicode text, are replaced."""
    text = _SURROGATES.sub("\ufffd", text)
    if "![" not in text and not _MENTION.search(text):
        return text
    lines = text.split("\n")
    code = _fenced(lines)
    return "\n".join(line if is_code else _harmless(line) for line, is_code in zip(lines, code, strict=True))


def _harmless(line: str) -> str:
    return _MENTION.sub("&#60;", _without_pictures(line) if "![" in line else line)


def _without_pictures(line: str) -> str:
    """`![words](address)` becomes a link, but for keys of uploaded pictures. One walk: each find begins where the last
    one ended, so that a line of nothing but brackets costs no more than its length."""
    kept, done, at, bracket, end = "", 0, 0, -1, -1
    while (start := line.find("![", at)) >= 0:
        at = start + 2
        bracket = bracket if bracket >= at else line.find("]", at)
        if bracket < 0:
            break
        if not line.startswith("(", bracket + 1):
            continue
        end = end if end >= bracket + 2 else line.find(")", bracket + 2)
        if end < 0:
            break
        address = line[bracket + 2 : min(end, bracket + 66)].lstrip().removeprefix("<")
        if not address.startswith("img_"):
            kept += line[done:start]
            done, at = start + 1, end + 1
    return kept + line[done:]


def closed(text: str) -> str:
    """A text that may stop in the middle of a code fence, with that fence closed: for showing while it streams."""
    fence = _open_fence(text.split("\n"))
    return f"{text}\n{fence.marker}" if fence else text


def split_answer(text: str, *, most_bytes: int = PART_BYTES, most_tables: int = PART_TABLES) -> list[str]:
    """The text in parts for one card each, in order; at least one, maybe empty.

    Between blocks the text is cut as it stands, so that joining the parts gives it back; a code fence that has to be
    cut is closed and opened again, a table's head is repeated. Stable: the parts of a part are the part.
    """
    if json_bytes(text) <= most_bytes and count_tables(text) <= most_tables:
        return [text]
    packer = _Packer(most_bytes, most_tables)
    for block in _blocks(text):
        for piece in block.cut(most_bytes, most_tables):
            packer.add(piece, is_heading=block.kind == "heading")
    return packer.finish()


def first_part(text: str) -> tuple[str, bool]:
    """The first of `split_answer`'s parts, and whether there are more: what a running card shows, often. Of a long
    text only the beginning is looked at, once."""
    beginning = text[: PART_BYTES + 2_000]
    if len(beginning) == len(text):
        parts = split_answer(text)
        return parts[0], len(parts) > 1
    return _first_of_long(beginning), True


@lru_cache(maxsize=64)
def _first_of_long(beginning: str) -> str:
    return split_answer(beginning)[0]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Something that is not cut any more. `size`: its bytes in JSON; `tables`: how many it may be counted as."""

    text: str
    size: int
    tables: int

    @classmethod
    def of(cls, text: str, *, is_code: bool = False) -> "_Piece":
        return cls(text, json_bytes(text), 0 if is_code else count_tables(text))

    def __add__(self, other: "_Piece") -> "_Piece":
        return _Piece(self.text + other.text, self.size + other.size, self.tables + other.tables)


class _Packer:
    """Puts pieces into parts, in order; a heading goes with what it heads."""

    def __init__(self, most_bytes: int, most_tables: int) -> None:
        self._most_bytes, self._most_tables = most_bytes, most_tables
        self._parts: list[str] = []
        self._current = self._heading = _Piece("", 0, 0)

    def add(self, piece: _Piece, *, is_heading: bool) -> None:
        if self._heading.text and not self._fits(self._heading, piece):
            self._place(self._heading)
            self._heading = _Piece("", 0, 0)
        unit, self._heading = self._heading + piece, _Piece("", 0, 0)
        if is_heading:
            self._heading = unit
        else:
            self._place(unit)

    def finish(self) -> list[str]:
        if self._heading.text:
            self._place(self._heading)
        return [*self._parts, self._current.text]

    def _place(self, unit: _Piece) -> None:
        if self._current.text and not self._fits(self._current, unit):
            self._parts.append(self._current.text)
            self._current = _Piece("", 0, 0)
        self._current += unit

    def _fits(self, one: _Piece, other: _Piece) -> bool:
        return one.size + other.size <= self._most_bytes and one.tables + other.tables <= self._most_tables


@dataclass(frozen=True, slots=True)
class _Fence:
    marker: str
    opening: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    """A top-level block with the blank lines behind it. `kind`: markdown-it's token type."""

    kind: str
    text: str

    def cut(self, most_bytes: int, most_tables: int) -> list[_Piece]:
        is_code = self.kind in ("fence", "code_block")
        pieces = [self.text] if is_code else _cut_tables(self.text, most_tables)
        return [_Piece.of(text, is_code=is_code) for piece in pieces for text in self._cut_bytes(piece, most_bytes)]

    def _cut_bytes(self, text: str, most_bytes: int) -> list[str]:
        if json_bytes(text) <= most_bytes:
            return [text]
        lines = text.splitlines(keepends=True)
        if self.kind == "fence" and (match := _FENCE.match(lines[0])):
            return _cut_lines(lines, most_bytes, head=lines[0], tail=f"{match[1]}\n")
        if self.kind == "table" and len(lines) > 2:
            return _cut_lines(lines, most_bytes, head="".join(lines[:2]), tail="")
        return _cut_lines(lines, most_bytes, head="", tail="")


def count_tables(text: str) -> int:
    """How many tables a text may be counted as: Feishu's own count is not known, so every head of one counts."""
    return len(_table_starts(text))


def _cut_tables(text: str, most_tables: int) -> list[str]:
    """One block that looks like more tables than a card takes, cut before the head of each one too many."""
    bounds = [0, *_table_starts(text)[most_tables::most_tables], len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


def _table_starts(text: str) -> list[int]:
    """Where each line begins that has a bar in it and a row of dashes below. Line by line, not by one expression:
    backtracking over a line of bars would hold up the whole process."""
    starts: list[int] = []
    if "|" not in text:
        return starts
    start, before, may_head = 0, 0, False  # `before`: length of the line before
    for line in text.split("\n"):
        is_table = may_head and _is_dashes(line)
        if is_table:
            starts.append(start - before)
        may_head = "|" in line and not is_table
        before = len(line) + 1
        start += before
    return starts


def _is_dashes(line: str) -> bool:
    """`|---|`, `:-- |`, `> | -`: what stands below a table's head, as far as its first cell."""
    cell = line.lstrip(" >").removeprefix("|").lstrip(" :")
    rest = cell.lstrip("-").lstrip(" :")
    return cell.startswith("-") and (not rest or rest.startswith("|"))


def _blocks(text: str) -> list[_Block]:
    lines = text.splitlines(keepends=True)
    starts: list[tuple[int, str]] = []
    for token in _MARKDOWN.parse(text):
        if token.map is None or token.level > 0 or token.nesting < 0:
            continue
        if not starts or token.map[0] > starts[-1][0]:
            starts.append((token.map[0], token.type.removesuffix("_open")))
    if not starts or starts[0][0] > 0:
        starts.insert(0, (0, "paragraph"))
    ends = [start for start, _ in starts[1:]] + [len(lines)]
    return [_Block(kind=kind, text="".join(lines[start:end])) for (start, kind), end in zip(starts, ends, strict=True)]


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
