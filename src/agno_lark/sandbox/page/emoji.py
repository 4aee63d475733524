"""Feishu's emoji keys as characters, for reactions and `:KEY:` in markdown."""

import re

__all__ = ["EMOJI", "REACTIONS", "emoji", "with_emoji"]

EMOJI: dict[str, str] = {
    "THUMBSUP": "👍", "ThumbsDown": "👎", "OK": "👌", "DONE": "✅", "CheckMark": "✅", "CrossMark": "❌",
    "HEART": "❤️", "APPLAUSE": "👏", "CLAP": "👏", "FISTBUMP": "🤜", "MUSCLE": "💪", "JIAYI": "➕",
    "SMILE": "😊", "LAUGH": "😄", "LOL": "😂", "FACEPALM": "🤦", "LOVE": "😍", "WINK": "😉", "PROUD": "😎",
    "THINKING": "🤔", "CRY": "😢", "SOB": "😭", "ANGRY": "😠", "SURPRISED": "😮", "SHOCKED": "😱",
    "SWEAT": "😅", "SLEEP": "😴", "THANKS": "🙏", "FINGERHEART": "🫰", "PRAISE": "🌹", "PARTY": "🎉",
    "FIRE": "🔥", "ROCKET": "🚀", "Get": "🫡", "OnIt": "🏃", "OneSecond": "⏳", "Typing": "⌨️",
    "LGTM": "🆗", "Hundred": "💯", "Alarm": "⏰", "EYES": "👀", "GLANCE": "👀", "WAVE": "👋", "ROSE": "🌹",
    "COFFEE": "☕", "BEER": "🍺", "CAKE": "🎂", "GIFT": "🎁", "Trophy": "🏆", "BOMB": "💣", "Pin": "📌",
    "StatusReading": "📖", "StatusInFlight": "✈️", "Loudspeaker": "📢", "Sigh": "😮‍💨", "BLUSH": "☺️",
    "WOW": "🤩", "SALUTE": "🫡", "SKULL": "💀", "MeMeMe": "🙋", "Yes": "✔️", "No": "🚫", "WHAT": "❓",
    "StatusEnjoyLife": "🌴", "Lemon": "🍋", "Music": "🎵", "HUG": "🤗", "SHAKE": "🤝", "SNEER": "😏",
}  # fmt: skip
REACTIONS = ("THUMBSUP", "DONE", "HEART", "APPLAUSE", "LAUGH", "THINKING")
UPPER = {key.upper(): mark for key, mark in EMOJI.items()}
IN_TEXT = re.compile(r":([A-Za-z][A-Za-z_]{1,30}):")


def emoji(key: str) -> str:
    """The character of an emoji key; a key without one stays readable in brackets."""
    return UPPER.get(key.upper(), f"[{key}]")


def with_emoji(text: str) -> str:
    """`:THUMBSUP:` and the like as characters; what is no emoji key stays as it was."""
    return IN_TEXT.sub(lambda found: UPPER.get(found.group(1).upper(), found.group()), text)
