"""The few card elements our cards are made of (card JSON 2.0, cards/README.md). Pure."""

import re
from typing import Any

__all__ = ["Card", "Element", "button", "card", "folded", "grey", "markdown", "plain", "row", "words"]

type Element = dict[str, Any]
type Card = dict[str, Any]

_ESCAPES = str.maketrans({letter: f"&#{ord(letter)};" for letter in "<>*[]`~#|"})
_EMPHASIS = re.compile(r"(?<!\w)_|_(?!\w)")  # an underscore inside a word emphasises nothing


def plain(text: str) -> str:
    """Text that is no Markdown, made to look as it reads inside a markdown element."""
    return _EMPHASIS.sub("&#95;", text.translate(_ESCAPES))


def words(content: str, element_id: str) -> Element:
    """Text that nobody reads as Markdown, line breaks kept."""
    return {"tag": "div", "element_id": element_id, "text": {"tag": "plain_text", "content": content}}


def markdown(content: str, element_id: str, *, small: bool = False) -> Element:
    element: Element = {"tag": "markdown", "element_id": element_id, "content": content}
    return element | {"text_size": "notation"} if small else element


def grey(text: str) -> str:
    """A side fact: grey, and nothing in it is read as Markdown."""
    return f"<font color='grey'>{plain(text)}</font>"


def button(text: str, element_id: str, value: dict[str, str]) -> Element:
    return {
        "tag": "button",
        "element_id": element_id,
        "text": {"tag": "plain_text", "content": text},
        "type": "default",
        "size": "small",
        "behaviors": [{"type": "callback", "value": value}],
    }


def row(elements: list[Element], element_id: str) -> Element:
    """Side by side, on a narrow screen below each other."""
    columns = [
        {"tag": "column", "width": "auto", "elements": [element], "vertical_align": "center"} for element in elements
    ]
    return {
        "tag": "column_set",
        "element_id": element_id,
        "flex_mode": "flow",
        "horizontal_spacing": "8px",
        "columns": columns,
    }


def folded(title: str, element_id: str, content: str) -> Element:
    """A panel that is closed until somebody opens it."""
    return {
        "tag": "collapsible_panel",
        "element_id": element_id,
        "expanded": False,
        "header": {
            "title": {"tag": "markdown", "content": grey(title)},
            "vertical_align": "center",
            "icon": {"tag": "standard_icon", "token": "down-small-ccm_outlined", "color": "grey", "size": "16px 16px"},
            "icon_position": "follow_text",
            "icon_expanded_angle": -180,
        },
        "vertical_spacing": "4px",
        "padding": "4px 0px 0px 8px",
        "elements": [markdown(content, f"{element_id}_text", small=True)],
    }


def card(
    elements: list[Element], *, summary: str, streaming: bool = False, title: str = "", template: str = "blue"
) -> Card:
    """A card; `summary` is what the notification and the chat list show."""
    config: dict[str, Any] = {"streaming_mode": streaming, "update_multi": True, "summary": {"content": summary}}
    if streaming:
        config["streaming_config"] = {
            "print_frequency_ms": {"default": 50},
            "print_step": {"default": 4},
            "print_strategy": "fast",
        }
    made: Card = {"schema": "2.0", "config": config}
    if title:
        made["header"] = {"title": {"tag": "plain_text", "content": title}, "template": template}
    return made | {"body": {"direction": "vertical", "vertical_spacing": "8px", "elements": elements}}
