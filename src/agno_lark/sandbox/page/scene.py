"""What drawing a message needs to know besides the message: who looks, who is who, where pictures are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Face", "Scene", "localised", "text_of"]

LOCALES = {"zh": "zh_cn", "en": "en_us"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Face:
    """A person or the bot as others see it. `mark`: what stands in the round picture; `colour`: a CSS #rrggbb."""

    open_id: str
    name: str
    mark: str = ""
    colour: str = "#8f959e"
    is_bot: bool = False


def _no_picture(_key: str) -> str | None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Who looks (`language` zh or en) and what they can see.

    `faces` maps an open_id to a face, `picture` an image or file key to a page address (None: there is no such
    resource), `colours` and `sizes` are the card's own words (looks.py), `label` translates the page's own sentences.
    """

    language: str = "en"
    faces: Mapping[str, Face] = field(default_factory=dict)
    picture: Callable[[str], str | None] = _no_picture
    colours: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    card_id: str = "card"

    @property
    def locale(self) -> str:
        """Feishu's word for the language: zh_cn or en_us."""
        return LOCALES.get(self.language, "en_us")

    def name_of(self, open_id: object) -> str:
        """The name behind an open_id, or what is left of the id when nobody is known by it."""
        if not isinstance(open_id, str) or not open_id:
            return "?"
        face = self.faces.get(open_id)
        return face.name if face else open_id[:9] + ("…" if len(open_id) > 9 else "")


def localised(holder: Mapping[str, Any], scene: Scene, key: str = "content") -> str:
    """The text under `key` in the looker's language (`i18n_<key>` and `i18n`), as a string whatever it was."""
    for source in (holder.get(f"i18n_{key}"), holder.get("i18n")):
        if isinstance(source, Mapping) and isinstance(source.get(scene.locale), str):
            return str(source[scene.locale])
    plain = holder.get(key)
    if plain is None:
        source = holder.get(f"i18n_{key}") or holder.get("i18n")
        plain = (
            next((text for text in source.values() if isinstance(text, str)), "") if isinstance(source, dict) else ""
        )
    return plain if isinstance(plain, str) else str(plain)


def text_of(holder: object, scene: Scene) -> str:
    """The text of a plain_text object (or of a bare string), "" where there is none."""
    if isinstance(holder, Mapping):
        return localised(holder, scene)
    return holder if isinstance(holder, str) else ""
