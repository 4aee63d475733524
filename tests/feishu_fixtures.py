"""What the wire's tests share: our samples, and JSON of every shape."""

from pathlib import Path

from hypothesis import strategies as st

from agno_lark.feishu import Event, parse_event

EVENTS = Path(__file__).parent / "data" / "payloads" / "events"
NAMES = sorted(path.stem for path in EVENTS.glob("*.json"))

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
WORDS = st.sampled_from(
    [
        *(
            "message",
            "sender",
            "sender_id",
            "open_id",
            "message_id",
            "chat_id",
            "message_type",
            "mentions",
            "key",
            "id",
        ),
        *("action", "operator", "context", "value", "options", "option", "checked", "create_time", "content", "name"),
    ]
)
BODIES = st.recursive(
    JSON, lambda inner: st.dictionaries(WORDS, inner, max_size=6) | st.lists(inner, max_size=3), max_leaves=30
)


def load(name: str) -> Event:
    return parse_event((EVENTS / f"{name}.json").read_bytes())
