"""What refuses a card: the schema first, then what a schema cannot say (sizes, counts, names, tables, pictures).

Same verdicts as ../shared/cards/check.py, which is the judge this module is tested against.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agno_lark.sandbox.cards.schema import explain, is_valid

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

__all__ = ["Finding", "check", "element_of", "md_tables", "refusal", "text_refusal"]

LIMIT_BYTES = 30 * 1024
LIMIT_NODES = 200
LIMIT_TABLES = 5
LIMIT_MARKDOWN_TABLES = 4

_HUES = [
    "blue",
    "carmine",
    "green",
    "indigo",
    "lime",
    "grey",
    "orange",
    "purple",
    "red",
    "sunflower",
    "turquoise",
    "violet",
    "wathet",
    "yellow",
]
_SHADES = ("00", "50", "100", "200", "300", "350", "400", "500", "600", "650", "700", "800", "900", "950", "1000")
_COLOURS = frozenset(
    [
        "default",
        "white",
        "bg-white",
        "black",
        "neutral",
        "laser",
        "none",
        "",
        *_HUES,
        *(f"{hue}-{shade}" for hue in _HUES for shade in _SHADES),
    ]
)
_COLOUR_KEYS = frozenset({"color", "text_color", "background_style", "background_color", "border_color", "fill_color"})
_OPAQUE = frozenset({"chart_spec", "rows", "value"})
_FENCE = re.compile(r"(?ms)^ {0,3}(`{3,}|~{3,}).*?(^ {0,3}\1`*\s*$|\Z)")
_MD_TABLE = re.compile(r"(?m)^ {0,3}\|?.*\|.*\n {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_MD_IMAGE = re.compile(r"!\[[^\]]*\]\(\s*([^)\s]+)")

type Path = Sequence[str | int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing wrong with a card. `code` 0 for warnings; `path` reads like the platform's ErrPath."""

    level: Literal["error", "warning"]
    code: int
    path: str
    message: str


def err_path(path: Path, card: Any) -> str:
    """`ROOT -> body -> elements -> [0](tag: markdown)`."""
    parts, node = ["ROOT"], card
    for step in path:
        node = node[step]
        if isinstance(step, int) and isinstance(node, dict) and "tag" in node:
            parts.append(f"[{step}](tag: {node['tag']})")
        else:
            parts.append(f"[{step}]" if isinstance(step, int) else step)
    return " -> ".join(parts)


def _nodes(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """Everything with a tag, from the top down."""
    if isinstance(node, dict):
        if isinstance(node.get("tag"), str):
            yield path, node
        for name, value in node.items():
            if name not in _OPAQUE and isinstance(value, (dict, list)):
                yield from _nodes(value, (*path, name))
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from _nodes(value, (*path, at))


def md_tables(text: str) -> int:
    """How many Markdown tables a text holds; those in code fences do not count."""
    return len(_MD_TABLE.findall(_FENCE.sub("", text))) if "|" in text else 0


def element_of(card: dict[str, Any], element_id: str) -> dict[str, Any] | None:
    """The element with this id, or None."""
    return next((node for _, node in _nodes(card) if node.get("element_id") == element_id), None)


def _schema_finding(error: "ValidationError", card: Any) -> Finding:
    path = list(error.absolute_path)
    instance: Any = error.instance
    code, message = 200621, error.message[:160]
    if error.validator == "additionalProperties":
        unknown = ", ".join(re.findall(r"'([^']+)'", error.message))
        message = f"unknown property, property: {unknown}, path: {err_path(path, card)}"
    elif error.validator == "enum" and path and path[-1] == "tag" and instance in ("note", "action"):
        path, code = path[:-1], 200861
        message = f"cards of schema V2 no longer support this capability; unsupported tag {instance}"
    elif path[-1:] == ["img_key"] and error.validator == "pattern":
        code, message = 200570, f"card contains invalid image keys; image key {instance}"
    elif error.validator == "maxContains":
        code, message = 11310, "card table number over limit"
    elif path[-1:] == ["update_multi"]:
        code, message = 300302, "update_multi property is false"
    elif path == ["schema"] or (path == [] and "'schema'" in error.message):
        code, message = 300303, "Only schema 2.0 is supported"
    elif list(error.absolute_schema_path)[:3] == ["allOf", 0, "then"]:
        code, message = 300220, "audio needs config.enable_forward false"
    elif error.validator == "anyOf" and "hasSubmit" in json.dumps(error.schema):
        code, message = 230099, "there is no submit button in the form container, at least one"
    elif error.validator == "not" and "nest6" in json.dumps(error.schema):
        code, message = 230099, "containers nested more than five levels"
    return Finding(level="error", code=code, path=err_path(path, card), message=message)


def check(card: Any, *, strict: bool = False, cardkit: bool = False) -> list[Finding]:
    """Everything wrong with a card. `cardkit` chooses that API's codes for size and count; `strict` refuses what the
    documentation leaves unclear."""
    if not isinstance(card, dict):
        return [Finding(level="error", code=200621, path="ROOT", message="not an object")]
    found: list[Finding] = []
    if not is_valid(card, strict=strict):
        found += [_schema_finding(error, card) for error in explain(card, strict=strict)]

    def add(level: Literal["error", "warning"], code: int, path: Path, message: str) -> None:
        found.append(Finding(level=level, code=code, path=err_path(path, card), message=message))

    size = len(json.dumps(card, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    if size > LIMIT_BYTES:
        add("error", 200860 if cardkit else 230025, (), f"{size} bytes, limit {LIMIT_BYTES}")
    everything = list(_nodes(card))
    if len(everything) > LIMIT_NODES:
        add(
            "error", 300305 if cardkit else 11310, (), f"element exceeds the limit ({len(everything)} of {LIMIT_NODES})"
        )
    colours = _COLOURS | _own_colours(card)
    ids: Counter[str] = Counter()
    names: Counter[str] = Counter()
    tables = 0
    for path, node in everything:
        element_id, name = node.get("element_id"), node.get("name")
        if isinstance(element_id, str):
            ids[element_id] += 1
            if ids[element_id] == 2:
                add("error", 300301, path, f"duplicate element_id {element_id}")
        if isinstance(name, str) and name:
            names[name] += 1
            if names[name] == 2:
                add("error", 200530, path, f"duplicate name {name} (shows when the user submits)")
        for key in _COLOUR_KEYS & node.keys():
            value = node[key]
            if isinstance(value, str) and value not in colours and not value.startswith("rgba("):
                add("warning", 0, path, f"{key}: {value!r} is neither a known colour nor in config.style.color")
        if node["tag"] in ("markdown", "lark_md"):
            tables += _check_text(node, path, add)
        elif node["tag"] == "table":
            tables += 1
            _check_rows(node, path, add)
        if isinstance(node.get("options"), list):
            _check_options(node, path, add)
    if tables > LIMIT_TABLES:
        add("error", 11310, (), f"card table number over limit ({tables} tables, markdown ones included)")
    header = card.get("header")
    if isinstance(header, dict) and len(_list(header.get("text_tag_list"))) > 3:
        add("warning", 0, ("header", "text_tag_list"), "only three tags are shown")
    if "body" not in card:
        add("warning", 0, (), "no body")
    return found


def _own_colours(card: dict[str, Any]) -> frozenset[str]:
    node: Any = card
    for name in ("config", "style", "color"):
        node = node.get(name) if isinstance(node, dict) else None
    return frozenset(node) if isinstance(node, dict) else frozenset()


def _check_text(node: dict[str, Any], path: Path, add: Any) -> int:
    """Tables and pictures of one text; returns how many of its tables count for the card."""
    counted = 0
    translations = node.get("i18n_content")
    others = list(translations.values()) if isinstance(translations, dict) else []
    for at, text in enumerate([node.get("content"), *others]):
        if not isinstance(text, str):
            continue
        tables = md_tables(text) if node["tag"] == "markdown" else 0
        if tables > LIMIT_MARKDOWN_TABLES:
            add("error", 11310, path, f"{tables} tables in one markdown component, limit {LIMIT_MARKDOWN_TABLES}")
        if at == 0:
            counted = tables
        for key in bad_images(text):
            add("error", 200570, path, f"card contains invalid image keys; image key {key}")
    return counted


def bad_images(text: str) -> list[str]:
    """Pictures of a Markdown text that are not image keys."""
    if "![" not in text:
        return []
    return [key for key in _MD_IMAGE.findall(_FENCE.sub("", text)) if not key.startswith("img_")]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _check_rows(node: dict[str, Any], path: Path, add: Any) -> None:
    declared = {str(c.get("name")) for c in _list(node.get("columns")) if isinstance(c, dict)}
    for at, row in enumerate(_list(node.get("rows"))):
        for key in row if isinstance(row, dict) else ():
            if key not in declared:
                add("error", 200915, path, f"rows[{at}]: column {key} is not declared")


def _check_options(node: dict[str, Any], path: Path, add: Any) -> None:
    values = [o.get("value") for o in node["options"] if isinstance(o, dict)]
    if any(n > 1 for value, n in Counter(map(str, values)).items() if value != "None"):
        add("error", 200621, path, "option values repeat (documented to break the control; send-time code unclear)")
    for chosen in _list(node.get("selected_values")):
        if values and chosen not in values:
            add("warning", 0, path, f"selected_values: {chosen} is not an option")


def text_refusal(card: dict[str, Any]) -> Finding | None:
    """What refuses a valid card after one of its texts changed: size, tables, pictures. Cheaper than `refusal`."""
    size = len(json.dumps(card, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    if size > LIMIT_BYTES:
        return Finding(level="error", code=200860, path="ROOT", message=f"{size} bytes, limit {LIMIT_BYTES}")
    found: list[Finding] = []

    def add(level: Literal["error", "warning"], code: int, path: Path, message: str) -> None:
        found.append(Finding(level=level, code=code, path=err_path(path, card), message=message))

    tables = 0
    for path, node in _nodes(card):
        if node["tag"] in ("markdown", "lark_md"):
            tables += _check_text(node, path, add)
        elif node["tag"] == "table":
            tables += 1
    if tables > LIMIT_TABLES:
        add("error", 11310, (), f"card table number over limit ({tables} tables, markdown ones included)")
    return found[0] if found else None


def refusal(card: Any, *, strict: bool = False, cardkit: bool = False) -> Finding | None:
    """The first finding that refuses the card, or None."""
    return next((f for f in check(card, strict=strict, cardkit=cardkit) if f.level == "error"), None)
