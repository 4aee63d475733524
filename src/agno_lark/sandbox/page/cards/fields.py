"""Elements a person fills in: input, selects, pickers, checker, select_img.

Each control carries `data-field` (how page/forms.js reads it), `data-name` and, alone on a card, `data-action`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from agno_lark.sandbox.page.cards.actions import confirmation
from agno_lark.sandbox.page.cards.pen import Draw, Element, Pen, action_of, calls_back, items
from agno_lark.sandbox.page.cards.texts import draw_text, icon_of
from agno_lark.sandbox.page.html import el, styles
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.looks import edges, pixels
from agno_lark.sandbox.page.scene import localised, text_of

__all__ = ["FAMILY"]

WORDS = {
    "pick": {"zh": "请选择", "en": "Choose"},
    "send": {"zh": "发送", "en": "Send"},
    "missing": {"zh": "此项必填", "en": "This is required"},
}


def _word(name: str, pen: Pen) -> str:
    return WORDS[name].get(pen.scene.language, WORDS[name]["en"])


def _frame(element: Element, pen: Pen, kind: str, control: Markup, *, label: Markup | None = None) -> Markup:
    """What every field has around it: its name, what it does alone, whether it must be filled, where it complains."""
    width = element.get("width")
    side = " side" if element.get("label_position") == "left" else ""
    return el(
        "div",
        {
            "class": f"field-box {kind}" + (" fill" if width == "fill" else "") + side,
            "style": styles(width=pixels(width)),
            "data-field": kind,
            "data-name": str(element.get("name") or ""),
            "data-required": element.get("required") is True,
            "data-action": action_of(element, kind) if calls_back(element) and not pen.in_form else None,
            "data-confirm": confirmation(element, pen),
        },
        label,
        control,
        el("p", {"class": "field-error", "role": "alert", "hidden": True}, _word("missing", pen)),
    )


def _about(element: Element, pen: Pen) -> dict[str, Any]:
    """Attributes every control shares."""
    hint = text_of(element.get("placeholder"), pen.scene)
    label = text_of(element.get("label"), pen.scene)
    return {
        "id": pen.dom_id("in"),
        "disabled": element.get("disabled") is True,
        "required": element.get("required") is True,
        "aria-label": None if label else hint or str(element.get("name") or element.get("tag")),
        "title": text_of(element.get("disabled_tips"), pen.scene) or None,
    }


def _label(element: Element, pen: Pen) -> Markup | None:
    text = text_of(element.get("label"), pen.scene)
    if not text:
        return None
    star = el("span", {"class": "star", "aria-hidden": "true"}, "*") if element.get("required") is True else None
    return el("label", {"class": "field-label", "for": pen.dom_id("in")}, text, star)


def _input(element: Element, pen: Pen) -> Markup:
    about = _about(element, pen)
    about["placeholder"] = text_of(element.get("placeholder"), pen.scene) or None
    limit = element.get("max_length")
    about["maxlength"] = limit if isinstance(limit, int) and limit > 0 else 1000
    start = localised(element, pen.scene, "default_value") if "default_value" in element else ""
    if element.get("input_type") == "multiline_text":
        rows = element.get("rows")
        about["rows"] = rows if isinstance(rows, int) and 0 < rows <= 30 else 5
        control = el("textarea", about, "\n" + start if start.startswith("\n") else start)
    else:
        about["type"] = "password" if element.get("input_type") == "password" else "text"
        control = el("input", {**about, "value": start or None})
    if not pen.in_form and calls_back(element):
        # Feishu shows a send mark inside an input that stands alone; Enter does the same.
        send = el(
            "button", {"type": "button", "class": "input-send", "aria-label": _word("send", pen)}, draw_icon("send")
        )
        control = el("div", {"class": "input-wrap"}, control, send)
    return _frame(element, pen, "input", control, label=_label(element, pen))


def _choices(element: Element, pen: Pen) -> list[tuple[str, str]]:
    """(value, text) of the options; a person's option is named by the person. No people given means: everybody here."""
    of_people = str(element.get("tag", "")).endswith("_person")
    found = [
        (
            str(option.get("value", "")),
            pen.scene.name_of(option.get("value")) if of_people else text_of(option.get("text"), pen.scene),
        )
        for option in items(element.get("options"))
    ]
    if of_people and not found:
        found = [(face.open_id, face.name) for face in pen.scene.faces.values() if not face.is_bot]
    return found


def _select(element: Element, pen: Pen) -> Markup:
    choices = _choices(element, pen)
    chosen = element.get("initial_option")
    index = element.get("initial_index")
    if chosen is None and isinstance(index, int) and 1 <= index <= len(choices):
        chosen = choices[index - 1][0]
    hint = text_of(element.get("placeholder"), pen.scene) or _word("pick", pen)
    options = [el("option", {"value": "", "selected": chosen is None}, hint)]
    options += [el("option", {"value": value, "selected": value == chosen}, text) for value, text in choices]
    bare = " bare" if element.get("type") == "text" else ""
    control = el("select", {**_about(element, pen), "class": f"select{bare}"}, *options)
    return _frame(element, pen, str(element.get("tag")), control, label=_label(element, pen))


def _multi_select(element: Element, pen: Pen) -> Markup:
    selected = element.get("selected_values")
    chosen = [str(value) for value in selected] if isinstance(selected, Sequence) else []
    hint = text_of(element.get("placeholder"), pen.scene) or _word("pick", pen)
    icons = [icon_of(option, pen.scene) for option in items(element.get("options"))]
    disabled = element.get("disabled") is True
    boxes = [
        el(
            "label",
            {"class": "tick"},
            el("input", {"type": "checkbox", "value": value, "checked": value in chosen, "disabled": disabled}),
            icons[index] if index < len(icons) else None,
            el("span", None, text),
        )
        for index, (value, text) in enumerate(_choices(element, pen))
    ]
    names = [text for value, text in _choices(element, pen) if value in chosen]
    summary = el(
        "summary",
        {"class": "select", "data-hint": hint, "aria-label": hint, "id": pen.dom_id("in")},
        el("span", {"class": "multi-shown" + ("" if names else " unset")}, ", ".join(names) or hint),
    )
    control = el("details", {"class": "multi"}, summary, el("div", {"class": "menu-list", "role": "group"}, *boxes))
    return _frame(element, pen, str(element.get("tag")), control, label=_label(element, pen))


PICKERS = {
    "date_picker": ("date", "initial_date"),
    "picker_time": ("time", "initial_time"),
    "picker_datetime": ("datetime-local", "initial_datetime"),
}


def _picker(element: Element, pen: Pen) -> Markup:
    tag = str(element.get("tag"))
    kind, start_key = PICKERS[tag]
    start = element.get(start_key)
    value = start.replace(" ", "T") if isinstance(start, str) else None
    control = el("input", {**_about(element, pen), "type": kind, "value": value})
    hint = text_of(element.get("placeholder"), pen.scene)
    label = el("span", {"class": "picker-hint", "aria-hidden": "true"}, hint) if hint else None
    return _frame(element, pen, tag, el("div", {"class": "picker", "data-filled": value is not None}, label, control))


def _checker(element: Element, pen: Pen) -> Markup:
    look = element.get("checked_style")
    look = look if isinstance(look, Mapping) else {}
    opacity = look.get("opacity")
    struck = " struck" if look.get("show_strikethrough") is True else ""
    area = element.get("button_area")
    area = area if isinstance(area, Mapping) else {}
    buttons = el("div", {"class": "checker-buttons"}, pen.inside("a").draw_all(area.get("buttons"))) if area else None
    name = None if text_of(element.get("text"), pen.scene) else str(element.get("name") or "checker")
    box = el(
        "input",
        {
            "type": "checkbox",
            "id": pen.dom_id("in"),
            "checked": element.get("checked") is True,
            "disabled": element.get("disabled") is True,
            "aria-label": name,
        },
    )
    text = el(
        "span",
        {"class": f"checker-text{struck}", "style": styles(__opacity=str(opacity) if _is_share(opacity) else None)},
        draw_text(element.get("text"), pen.scene),
    )
    hint = text_of(element.get("hover_tips"), pen.scene) or None
    row = {"class": "checker-row", "style": styles(padding=edges(element.get("padding")))}
    control = el("div", row, el("label", {"class": "tick", "title": hint}, box, text), buttons)
    return _frame(element, pen, "checker", control)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _select_img(element: Element, pen: Pen) -> Markup:
    several = element.get("multi_select") is True
    layout = element.get("layout") if element.get("layout") in ("stretch", "bisect", "trisect") else "bisect"
    ratio = {"16:9": "16/9", "4:3": "4/3"}.get(str(element.get("aspect_ratio")), "1/1")
    entries = []
    for index, option in enumerate(items(element.get("options"))):
        address = pen.scene.picture(str(option.get("img_key", "")))
        value = str(option.get("value", ""))
        shown = (
            el("img", {"src": address, "alt": ""}) if address else el("span", {"class": "no-image"}, draw_icon("image"))
        )
        box = el(
            "input",
            {
                "type": "checkbox" if several else "radio",
                "name": pen.dom_id("pick"),
                "value": value,
                "aria-label": value or str(index + 1),
                "disabled": element.get("disabled") is True or option.get("disabled") is True,
            },
        )
        entries.append(el("label", {"class": "pick", "style": f"aspect-ratio:{ratio}"}, box, shown))
    control = el("div", {"class": f"picks {layout}", "role": "group"}, *entries)
    return _frame(element, pen, "select_img", control)


FAMILY: dict[str, Draw] = {
    "input": _input,
    "select_static": _select,
    "select_person": _select,
    "multi_select_static": _multi_select,
    "multi_select_person": _multi_select,
    "date_picker": _picker,
    "picker_time": _picker,
    "picker_datetime": _picker,
    "checker": _checker,
    "select_img": _select_img,
}
