"""Whatever a card or a message holds, the page stays whole and safe."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agno_lark.sandbox.page.cards import FAMILIES, draw_card, summary_of
from agno_lark.sandbox.page.markdown import lark_md, markdown
from agno_lark.sandbox.page.scene import Scene
from tests.page_reading import read_html

SCRAPS = st.sampled_from(
    [
        "<", ">", "</", "/>", "<font color='red'>", "</font>", "<at id=", "<at id=all></at>", "<a href='",
        "javascript:", "](", "[", "![", ")", "**", "*", "~~", "`", "```\n", "\n", "\n\n", "|", "|-|-|\n", "# ",
        "> ", "- ", "1. ", "<br>", "'", "\"", "&lt;", "&", "<script>", "</script>", "onclick=", "style=",
        "https://x.example", "img_1", ":OK:", "<text_tag color='", "\u202e", "字", "x",
        "<link url=https://x.example>", "</link>", "<number_tag background_color=red>", "<person id=ou_1>", "\\",
        "---\n",
    ]
)  # fmt: skip
SOURCE = st.lists(SCRAPS | st.text(max_size=6), max_size=30).map("".join)
SCENE = Scene(picture=lambda key: f"/sandbox/page/resources/{key}" if key == "img_1" else None)
KEYS = st.sampled_from(["text", "content", "tag", "value", "name"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | SOURCE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
FILLED = ("content", "text", "options", "name", "behaviors", "value", "placeholder", "margin", "rows", "header", "icon")
ELEMENT: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.fixed_dictionaries({"tag": st.sampled_from(sorted(FAMILIES)) | SOURCE}, optional=dict.fromkeys(FILLED, JSON)),
    lambda inner: st.builds(
        lambda tag, elements: {"tag": tag, "elements": elements, "columns": elements},
        st.sampled_from(["form", "column_set", "column", "collapsible_panel", "interactive_container"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(SOURCE)
def test_any_markdown_is_drawn_safely_and_closed(source: str) -> None:
    for draw in (markdown, lark_md):
        html = str(draw(source, SCENE))
        reading = read_html(f"<section>{html}</section>")
        assert reading.problems == []
        for tag in ("div", "p", "span", "a", "ul", "ol", "li", "table", "strong", "em", "pre", "code", "blockquote"):
            assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>"), tag


@settings(max_examples=150, deadline=None)
@given(st.lists(ELEMENT, max_size=4), JSON, JSON)
def test_any_card_is_drawn_safely_and_closed(elements: list[dict[str, Any]], config: Any, header: Any) -> None:
    card = {"schema": "2.0", "config": config, "header": header, "body": {"elements": elements}}
    html = str(draw_card(card, SCENE))
    assert read_html(html).problems == []
    for tag in ("div", "span", "form", "details", "button", "label", "table", "article"):
        assert html.count(f"<{tag}>") + html.count(f"<{tag} ") == html.count(f"</{tag}>"), tag
    assert isinstance(summary_of(card, SCENE), str)
