"""Round pictures of people and of the bot."""

import re

from markupsafe import Markup

from agno_lark.sandbox.page.html import el
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.scene import Scene

__all__ = ["avatar"]

COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


def avatar(open_id: str, scene: Scene, *, size: str = "medium") -> Markup:
    """The face behind an open_id; the first letter of the name where there is no picture."""
    face = scene.faces.get(open_id)
    if face is not None and face.is_bot:
        return el("span", {"class": f"avatar {size} bot", "aria-hidden": "true"}, draw_icon("robot"))
    mark = (face.mark if face else "") or scene.name_of(open_id)[:1].upper()
    colour = face.colour if face and COLOUR.fullmatch(face.colour) else "#8f959e"
    return el("span", {"class": f"avatar {size}", "aria-hidden": "true", "style": f"--tint:{colour}"}, mark)
