"""Every sentence people read, in zh and en.

Enters: a phrase's key, a language, values. Leaves: the sentence. Nothing is stored. A key or a value that is missing is
a bug and raises `KeyError`; tests hold both languages to the same keys and the same values.
"""

from typing import Literal

from agno_lark.locale.phrases import PHRASES

__all__ = ["PHRASES", "Lang", "duration", "language_of_text", "say"]

type Lang = Literal["zh", "en"]


def say(key: str, lang: Lang, /, **values: object) -> str:
    """The phrase `key` in `lang`, its `{names}` replaced by `values`."""
    return PHRASES[key][lang].format(**values)


def language_of_text(text: str) -> Lang | None:
    """zh for text with Chinese characters, en for text with Latin letters alone, None where there is neither."""
    if any("\u4e00" <= letter <= "\u9fff" or "\u3400" <= letter <= "\u4dbf" for letter in text):
        return "zh"
    return "en" if any(letter.isascii() and letter.isalpha() for letter in text) else None


def duration(ms: int, lang: Lang) -> str:
    """A length of time as people say it: 0.8 s, 12 s, 3 min 5 s, 1 h 2 min, from two days on in days."""
    hour, minute, second = ("小时", "分", "秒") if lang == "zh" else ("h", "min", "s")
    tenths = max(0, ms) // 100
    seconds = tenths // 10
    if seconds < 10:
        return f"{seconds}.{tenths % 10} {second}"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} {'天' if lang == 'zh' else 'days'}"
    parts = [(hours, hour), (minutes, minute), (0 if hours else seconds, second)]
    return " ".join(f"{value} {unit}" for value, unit in parts if value)
