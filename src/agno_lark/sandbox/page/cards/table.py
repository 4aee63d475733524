"""The table element: typed columns, pages of rows (turned by page/cards.js)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from agno_lark.sandbox.page.avatars import avatar
from agno_lark.sandbox.page.cards.pen import Draw, Element, Pen, items
from agno_lark.sandbox.page.html import el, join, lines, styles
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.looks import colour, pixels, tag_hue
from agno_lark.sandbox.page.markdown import lark_md, markdown

__all__ = ["FAMILY"]

MOST_COLUMNS = 50
ALIGN = ("left", "center", "right")


def _table(element: Element, pen: Pen) -> Markup:
    columns = items(element.get("columns"))[:MOST_COLUMNS]
    rows = items(element.get("rows"))
    size = element.get("page_size")
    size = size if isinstance(size, int) and 1 <= size <= 10 else 5
    look = element.get("header_style")
    look = look if isinstance(look, Mapping) else {}
    grey = " grey" if look.get("background_style") == "grey" else ""
    style = styles(
        color=colour(look.get("text_color"), pen.scene.colours),
        font_weight="600" if look.get("bold") is not False else "400",
        text_align=str(look["text_align"]) if look.get("text_align") in ALIGN else None,
    )
    head = el(
        "tr",
        None,
        *(
            el(
                "th",
                {"scope": "col", "style": _width(column)},
                str(column.get("display_name") or column.get("name") or ""),
            )
            for column in columns
        ),
    )
    body = [
        el(
            "tr",
            {"data-page": index // size, "hidden": index >= size},
            *(_cell(row.get(str(column.get("name"))), column, pen) for column in columns),
        )
        for index, row in enumerate(rows)
    ]
    frozen = " frozen" if element.get("freeze_first_column") is True else ""
    grid = el(
        "table",
        {"class": f"grid{frozen}"},
        el("thead", {"class": "grid-head" + grey, "style": style}, head),
        el("tbody", None, *body),
    )
    return el(
        "div",
        {"class": "table"},
        el("div", {"class": "table-scroll", "tabindex": "0"}, grid),
        _pages(len(rows), size, pen) if len(rows) > size else None,
    )


def _width(column: Element) -> str | None:
    width = pixels(column.get("width"))
    return styles(width=width, min_width=width if width and width.endswith("px") else None)


def _pages(count: int, size: int, pen: Pen) -> Markup:
    pages = (count + size - 1) // size
    before, after = {"zh": ("上一页", "下一页")}.get(pen.scene.language, ("Previous page", "Next page"))
    return el(
        "div",
        {"class": "pages", "data-pages": pages},
        el("button", {"type": "button", "data-turn": "-1", "aria-label": before}, draw_icon("back")),
        el("span", {"class": "page-now", "aria-live": "polite"}, f"1 / {pages}"),
        el("button", {"type": "button", "data-turn": "1", "aria-label": after}, draw_icon("right")),
    )


def _cell(value: Any, column: Element, pen: Pen) -> Markup:
    kind = str(column.get("data_type") or "text")
    align = column.get("horizontal_align")
    align = align if align in ALIGN else ("right" if kind == "number" else None)
    return el("td", {"class": f"to-{align}" if align else None}, _content(value, kind, column, pen))


def _content(value: Any, kind: str, column: Element, pen: Pen) -> Markup:
    if value is None:
        return Markup("")
    if kind == "options":
        chosen = items(value) or [{"text": value}]
        return join(
            (
                el("span", {"class": f"text-tag hue-{tag_hue(item.get('color'))}"}, str(item.get("text", "")))
                for item in chosen
            ),
            " ",
        )
    if kind == "persons":
        ids = [value] if isinstance(value, str) else [str(each) for each in value if isinstance(each, str)]
        return join(
            el("span", {"class": "who"}, avatar(open_id, pen.scene, size="extra_small"), pen.scene.name_of(open_id))
            for open_id in ids
        )
    if kind == "number" and isinstance(value, int | float):
        return el("span", {"class": "number"}, _number(value, column.get("format")))
    if kind == "date" and isinstance(value, int | float) and not isinstance(value, bool):
        return el("span", None, _date(value, str(column.get("date_format") or "YYYY/MM/DD")))
    if kind == "lark_md":
        return lark_md(str(value), pen.scene)
    if kind == "markdown":
        return el("div", {"class": "md"}, markdown(str(value), pen.scene))
    return lines(_flat(value))


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("text", ""))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(_flat(each) for each in value)
    return str(value)


def _number(value: float, form: object) -> str:
    form = form if isinstance(form, Mapping) else {}
    places = form.get("precision")
    comma = "," if form.get("separator") is True else ""
    digits = f".{places}f" if isinstance(places, int) and 0 <= places <= 10 else ""
    text = f"{value:{comma}{digits}}"
    symbol = form.get("symbol")
    return f"{symbol}{text}" if isinstance(symbol, str) else text


def _date(value: float, form: str) -> str:
    """Feishu's date_format words; times are the sandbox's (UTC), as it has no zone of its own."""
    try:
        at = datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(value)
    words = {
        "YYYY": f"{at:%Y}",
        "MM": f"{at:%m}",
        "DD": f"{at:%d}",
        "HH": f"{at:%H}",
        "mm": f"{at:%M}",
        "ss": f"{at:%S}",
    }
    text = form[:40]
    for word, part in words.items():
        text = text.replace(word, part)
    return text


FAMILY: dict[str, Draw] = {"table": _table}
