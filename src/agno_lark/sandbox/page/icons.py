"""Line icons of our own, drawn on a 24 px grid, for Feishu's icon tokens and for the page itself."""

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from agno_lark.sandbox.page.looks import colour

__all__ = ["draw_icon", "icon"]

# name: path data. A token is matched by its first word: `search_outlined` and `search_filled` are both `search`.
PATHS: dict[str, str] = {
    "add": "M12 5v14M5 12h14",
    "alarm": "M12 21a8 8 0 1 0 0-16 8 8 0 0 0 0 16ZM12 9v4l3 2M4 4 2 6M20 4l2 2",
    "app": "M4 4h6v6H4zM14 4h6v6h-6zM4 14h6v6H4zM14 14h6v6h-6z",
    "approval": "M9 3h6v4H9zM6 5h3M15 5h3v16H6V5M9 14l2 2 4-4",
    "at": "M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0Zm0 0v1.5a2.5 2.5 0 0 0 5 0V12a9 9 0 1 0-4 7.5",
    "attach": "m20 11-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 5 5l-8.5 8.4a1.6 1.6 0 0 1-2.4-2.3L15 7.5",
    "back": "M15 5l-7 7 7 7",
    "bell": "M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4",
    "board": "M4 5h16v14H4zM9 5v14M14.5 5v14",
    "calendar": "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4",
    "chat": "M4 5h16v11H10l-4 4v-4H4z",
    "chart": "M4 4v16h16M8 16v-4M12 16V8M16 16v-6",
    "close": "M6 6l12 12M18 6 6 18",
    "code": "m8 8-4 4 4 4M16 8l4 4-4 4M13.5 5l-3 14",
    "copy": "M9 9h11v11H9zM5 15H4V4h11v1",
    "delete": "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
    "doc": "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
    "down": "m6 9 6 6 6-6",
    "download": "M12 4v11M7 11l5 5 5-5M4 20h16",
    "edit": "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
    "emoji": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM9 9.5v1M15 9.5v1M8.5 14.5a4.5 4.5 0 0 0 7 0",
    "error": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM9 9l6 6M15 9l-6 6",
    "file": "M6 3h8l4 4v14H6zM14 3v4h4",
    "folder": "M3 6h6l2 2h10v11H3z",
    "group": (
        "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20a6.5 6.5 0 0 1 13 0M16 4.4a3.5 3.5 0 0 1 0 6.2"
        "M18 14.5a6.5 6.5 0 0 1 3.5 5.5"
    ),
    "hash": "M9 4 7 20M17 4l-2 16M4 9h17M3 15h17",
    "image": "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01",
    "info": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 11v5M12 8v.01",
    "link": "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7L12 7M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7L12 17",
    "list": "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
    "lock": "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
    "mail": "M4 6h16v12H4zM4 7l8 6 8-6",
    "maybe": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 16.5v.01",
    "member": "M12 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4.5 21a7.5 7.5 0 0 1 15 0",
    "more": "M5.5 12h.01M12 12h.01M18.5 12h.01",
    "play": "M7 5v14l12-7z",
    "recall": "M4 5v5h5M4.4 10a8 8 0 1 1-.3 4",
    "reply": "M10 7 5 12l5 5M5 12h9a5 5 0 0 0 5-5V5",
    "right": "m9 6 6 6-6 6",
    "robot": "M5 9h14v10H5zM12 9V5M12 4v.01M9 13v1.5M15 13v1.5M2.5 12.5v3M21.5 12.5v3",
    "search": "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4",
    "send": "M4 12 20 4l-4 16-5-6zM11 14l9-10",
    "setting": (
        "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.1 2.1M16.3 16.3l2.1 2.1"
        "M5.6 18.4l2.1-2.1M16.3 7.7l2.1-2.1"
    ),
    "sheet": "M4 4h16v16H4zM4 10h16M4 15h16M10 4v16",
    "star": "m12 4 2.4 5 5.6.8-4 4 .9 5.7-4.9-2.7-4.9 2.7.9-5.7-4-4 5.6-.8z",
    "stop": "M7 7h10v10H7z",
    "thread": "M5 4v9a4 4 0 0 0 4 4h10M15 13l4 4-4 4M10 5h9M10 10h9",
    "thumbdown": "M7 14V4H4v10zM7 13l4 8c2 0 2.5-1.5 2.5-3V15h5l1.5-8-1.5-3H7",
    "thumbsup": "M7 10v10H4V10zM7 11l4-8c2 0 2.5 1.5 2.5 3v3h5l1.5 8-1.5 3H7",
    "time": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 7v5l3.5 2",
    "todo": "M4 4h16v16H4zM8 12l3 3 5-6",
    "up": "m6 15 6-6 6 6",
    "video": "M3 6h12v12H3zM15 10l6-3v10l-6-3z",
    "voice": "M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3ZM6 11.5a6 6 0 0 0 12 0M12 17.5V21",
    "warning": "M12 4 2.5 20h19zM12 10v4.5M12 17v.01",
    "yes": "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM8 12.5l2.7 2.7L16 9.5",
}
SAME = {
    "bitable": "sheet", "chatbot": "robot", "myai": "robot", "ai": "robot", "bot": "robot", "check": "yes",
    "succeed": "yes", "done": "yes", "calender": "calendar", "contacts": "group", "department": "group",
    "docx": "doc", "wiki": "doc", "notes": "doc", "expand": "down", "history": "time", "clock": "time",
    "schedule": "time", "hide": "lock", "language": "hash", "no": "error", "cancel": "error", "person": "member",
    "user": "member", "pin": "star", "collection": "star", "reject": "error", "report": "doc", "safe": "lock",
    "settings": "setting", "share": "link", "table": "sheet", "task": "todo", "tab": "todo", "trash": "delete",
    "undo": "recall", "url": "link", "loading": "time", "picture": "image", "message": "chat", "forward": "right",
    "left": "back", "tool": "setting", "mic": "voice", "ok": "yes",
}  # fmt: skip
UNKNOWN = "M12 15.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7Z"
WORD = re.compile(r"[a-z]+")


def draw_icon(name: str, *, tint: str | None = None, css_class: str = "") -> Markup:
    """An icon of this page. `tint` is a checked CSS colour. Decorative: hidden from screen readers."""
    path = PATHS.get(name, UNKNOWN)
    style = Markup(' style="color:{}"').format(tint) if tint else Markup("")
    return Markup(
        '<svg class="icon {}" data-icon="{}" viewBox="0 0 24 24" aria-hidden="true" focusable="false"{}>'
        '<path d="{}"></path></svg>'
    ).format(css_class, name, style, path)


def icon(spec: object, colours: Mapping[str, str] | None = None) -> Markup | None:
    """An `icon` object of a card (standard_icon only; custom icons are pictures, see cards/media.py)."""
    if not isinstance(spec, Mapping) or not isinstance(spec.get("token"), str):
        return None
    word = WORD.match(spec["token"].lower())
    name = word.group() if word else ""
    tint = colour(spec.get("color"), colours)
    return draw_icon(SAME.get(name, name), tint=str(escape(tint)) if tint else None)
