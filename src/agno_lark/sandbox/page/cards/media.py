"""Elements that are pictures, people or sound: img, img_combination, person, person_list, chart, audio."""

from collections.abc import Mapping

from markupsafe import Markup

from agno_lark.sandbox.page.avatars import avatar
from agno_lark.sandbox.page.cards.pen import Draw, Element, Pen, items
from agno_lark.sandbox.page.cards.texts import draw_text, icon_of
from agno_lark.sandbox.page.html import el, styles
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.looks import pixels
from agno_lark.sandbox.page.scene import Scene, localised, text_of

__all__ = ["FAMILY"]

SIZES = ("stretch", "large", "medium", "small", "tiny")
SCALES = {"crop_center": "cover", "crop_top": "cover", "fit_horizontal": "contain"}
SHOWN = {"double": 2, "triple": 3, "bisect": 6, "trisect": 9}


def _address(element: Element, scene: Scene) -> str | None:
    return scene.picture(localised(element, scene, "img_key"))


def _img(element: Element, pen: Pen) -> Markup:
    scene = pen.scene
    address = _address(element, scene)
    alt = text_of(element.get("alt"), scene)
    title = element.get("title")
    size = element.get("size")
    wide = [part for part in str(size or "").split() if pixels(part)]
    scale = str(element.get("scale_type") or "")
    style = styles(
        border_radius=pixels(element.get("corner_radius")),
        width=wide[0] if len(wide) == 2 else None,
        height=wide[1] if len(wide) == 2 else None,
        object_fit=SCALES.get(scale),
        object_position="top" if scale == "crop_top" else None,
    )
    named = size if size in SIZES else ""
    css_class = f"image {named} {'clear' if element.get('transparent') is True else ''}".strip()
    if address is None:
        shown = _missing(alt, css_class, styles(border_radius=pixels(element.get("corner_radius"))))
    elif element.get("preview") is not False:
        picture = el("img", {"class": css_class, "src": address, "alt": alt, "style": style, "loading": "lazy"})
        shown = el(
            "button", {"type": "button", "class": "zoom", "data-zoom": address, "aria-label": alt or "image"}, picture
        )
    else:
        shown = el("img", {"class": css_class, "src": address, "alt": alt, "style": style, "loading": "lazy"})
    head = el("div", {"class": "image-title"}, draw_text(title, scene)) if text_of(title, scene) else None
    return el("figure", {"class": "figure"}, head, shown)


def _missing(alt: str, css_class: str, style: str | None = None) -> Markup:
    """A picture whose key the sandbox does not hold."""
    about = {"class": f"no-image {css_class}", "role": "img", "aria-label": alt or "image", "style": style}
    return el("span", about, draw_icon("image"), el("span", None, alt) if alt else None)


def _img_combination(element: Element, pen: Pen) -> Markup:
    mode = str(element.get("combination_mode"))
    mode = mode if mode in SHOWN else "trisect"
    radius = styles(border_radius=pixels(element.get("corner_radius")))
    cells = []
    for entry in items(element.get("img_list"))[: SHOWN[mode]]:
        address = _address(entry, pen.scene)
        if address:
            picture = el("img", {"src": address, "alt": "", "loading": "lazy"})
            about = {
                "type": "button",
                "class": "zoom cell",
                "data-zoom": address,
                "aria-label": "image",
                "style": radius,
            }
            cells.append(el("button", about, picture))
        else:
            cells.append(_missing("", "cell", radius))
    return el("div", {"class": f"mosaic {mode}"}, *cells)


def _one_person(open_id: str, element: Element, scene: Scene, *, with_name: bool) -> Markup:
    name = scene.name_of(open_id)
    size = str(element.get("size") or "medium")
    size = size if size in ("extra_small", "small", "medium", "large") else "medium"
    with_face = element.get("show_avatar") is not False
    capsule = " capsule" if element.get("style") == "capsule" else ""
    return el(
        "span",
        {"class": f"who{capsule}", "title": name},
        avatar(open_id, scene, size=size) if with_face else None,
        el("span", {"class": "who-name" if with_name else "unseen"}, name),
    )


def _person(element: Element, pen: Pen) -> Markup:
    open_id = str(element.get("user_id", ""))
    return _one_person(open_id, element, pen.scene, with_name=element.get("show_name") is True)


def _person_list(element: Element, pen: Pen) -> Markup:
    with_name = element.get("show_name") is not False
    people = [
        _one_person(str(person.get("id", "")), element, pen.scene, with_name=with_name)
        for person in items(element.get("persons"))
    ]
    return el("div", {"class": "with-icon"}, icon_of(element, pen.scene), el("div", {"class": "people grow"}, *people))


def _chart(element: Element, pen: Pen) -> Markup:
    """Feishu draws VChart here; the sandbox says which chart would stand there."""
    spec = element.get("chart_spec")
    spec = spec if isinstance(spec, Mapping) else {}
    title = spec.get("title")
    name = str(title.get("text", "")) if isinstance(title, Mapping) else ""
    words = {"zh": "图表", "en": "Chart"}
    kind = str(spec.get("type", ""))[:40]
    return el(
        "div",
        {"class": "chart", "role": "img", "aria-label": f"{words.get(pen.scene.language, 'Chart')} {kind}"},
        el("span", {"class": "bars", "aria-hidden": "true"}, *(el("i", None) for _ in range(5))),
        el("span", None, name or f"{words.get(pen.scene.language, 'Chart')} · {kind}"),
    )


def _audio(element: Element, pen: Pen) -> Markup:
    words = {"zh": "语音", "en": "Audio"}
    address = pen.scene.picture(localised(element, pen.scene, "file_key"))
    if address:
        return el("audio", {"controls": True, "src": address, "preload": "none", "class": "audio"})
    return el("div", {"class": "audio chip"}, draw_icon("voice"), words.get(pen.scene.language, "Audio"))


FAMILY: dict[str, Draw] = {
    "img": _img,
    "img_combination": _img_combination,
    "person": _person,
    "person_list": _person_list,
    "chart": _chart,
    "audio": _audio,
}
