"""Feishu's markdown as safe HTML: CommonMark without HTML blocks, tables, strike, and Feishu's own tags (tags.py).

No text of a card reaches the page as HTML: tags are read, known ones drawn anew, all else escaped or dropped.
Source of the rules: cards/README.md, "Markdown component".
"""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape

from agno_lark.sandbox.page.emoji import with_emoji
from agno_lark.sandbox.page.html import Piece, el, join, lines, safe_url
from agno_lark.sandbox.page.icons import draw_icon
from agno_lark.sandbox.page.scene import Scene
from agno_lark.sandbox.page.tags import TAG, closing, opening, read_tag

__all__ = ["lark_md", "markdown"]


def _feishu_tag(state: StateInline, silent: bool) -> bool:
    """CommonMark knows no `_` in tag names; Feishu does (`<text_tag>`)."""
    found = TAG.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("html_inline", "", 0).content = found.group()
    state.pos = found.end()
    return True


def _any_link(url: str) -> bool:
    """Addresses are judged while drawing (html.safe_url), where a bad one still leaves its text."""
    return True


def _parser(preset: str, on: Sequence[str], off: Sequence[str]) -> MarkdownIt:
    parser = MarkdownIt(preset, {"html": True, "maxNesting": 40}).enable(on).disable(off)
    parser.inline.ruler.before("html_inline", "feishu_tag", _feishu_tag)
    parser.validateLink = _any_link  # type: ignore[method-assign]
    return parser


FULL = _parser("commonmark", ("table", "strikethrough"), ("html_block", "reference"))
SMALL = _parser(
    "zero", ("newline", "emphasis", "strikethrough", "link", "html_inline", "escape", "entity", "autolink"), ()
)
PLAIN_BLOCKS = {
    "blockquote": "blockquote", "list_item": "li", "bullet_list": "ul", "thead": "thead", "tbody": "tbody", "tr": "tr",
    "strong": "strong", "em": "em", "s": "s",
}  # fmt: skip


def markdown(source: str, scene: Scene) -> Markup:
    """The markdown component's text. Never raises, whatever the source."""
    return _blocks(FULL.parse(source), scene)


def lark_md(source: str, scene: Scene) -> Markup:
    """The small dialect of texts inside other components: no headings, lists, tables or code."""
    return _blocks(SMALL.parse(source), scene)


def _blocks(tokens: Sequence[Token], scene: Scene) -> Markup:
    out: list[Piece] = []
    for token in tokens:
        name = token.type.removesuffix("_open").removesuffix("_close")
        if token.type == "inline":
            out.append(_inline(token.children or [], scene))
        elif token.type in ("fence", "code_block"):
            out.append(_code(token))
        elif token.type == "hr":
            out.append(Markup("<hr>"))
        elif name == "paragraph":
            # A tight list's paragraphs are hidden: the text stands in the item itself.
            out.append(None if token.hidden else _mark("p", token, 'class="md-p"'))
        elif name == "heading":
            out.append(
                _mark(
                    "p",
                    token,
                    Markup('class="md-h md-{}" role="heading" aria-level="{}"').format(token.tag, token.tag[1:]),
                )
            )
        elif name == "ordered_list":
            out.append(_mark("ol", token, Markup('start="{}"').format(token.attrGet("start") or 1)))
        elif name == "table":
            out.append(
                Markup('<div class="md-table" tabindex="0"><table>') if token.nesting == 1 else Markup("</table></div>")
            )
        elif name in ("th", "td"):
            align = str(token.attrGet("style") or "").removeprefix("text-align:")
            out.append(
                _mark(
                    name, token, Markup('class="to-{}"').format(align) if align in ("left", "right", "center") else ""
                )
            )
        elif name in PLAIN_BLOCKS:
            out.append(_mark(PLAIN_BLOCKS[name], token))
        else:
            out.append(with_emoji(token.content))
    return join(out)


def _mark(tag: str, token: Token, attributes: str = "") -> Markup:
    """A start or end tag; both arguments are our own words."""
    if token.nesting == -1:
        return Markup(f"</{tag}>")
    return Markup(f"<{tag} {attributes}>" if attributes else f"<{tag}>")


def _code(token: Token) -> Markup:
    language = (token.info.strip().split() or [""])[0][:30]
    return el(
        "div",
        {"class": "md-code"},
        el("div", {"class": "md-code-head"}, el("span", None, language.lower() or "text"), _copy_button()),
        el("pre", {"tabindex": "0"}, el("code", None, token.content.rstrip("\n"))),
    )


def _copy_button() -> Markup:
    return el("button", {"type": "button", "class": "copy", "data-copy": True, "aria-label": "Copy"}, draw_icon("copy"))


def _inline(tokens: Sequence[Token], scene: Scene) -> Markup:
    """Runs of text, marks and tags. `waiting`: Feishu's tags still open, closed at the latest at the end."""
    out: list[Piece] = []
    waiting: list[tuple[str, str]] = []
    links: list[str] = []
    for token in tokens:
        if token.type == "html_inline":
            _tag(token.content, waiting, out, scene)
        elif waiting and waiting[-1][1] == "":
            continue  # inside <at>..</at> and the like: the name is ours, not the sender's
        elif token.type == "link_open":
            links.append(_link_open(str(token.attrGet("href") or ""), out))
        elif token.type == "link_close":
            out.append(closing(links.pop() if links else "span"))
        else:
            out.append(_leaf(token, scene, linked=bool(links)))
    out.extend(closing(end) for _, end in reversed(waiting))
    return join(out)


def _link_open(address: str, out: list[Piece]) -> str:
    safe = safe_url(address)
    if safe is None:
        out.append(Markup('<span class="dead-link">'))
        return "span"
    out.append(Markup('<a href="{}" target="_blank" rel="noopener noreferrer">').format(safe))
    return "a"


def _leaf(token: Token, scene: Scene, *, linked: bool) -> Piece:
    if token.type in ("text", "text_special"):
        return lines(with_emoji(token.content), link=not linked)
    if token.type in ("softbreak", "hardbreak"):
        return Markup("<br>")
    if token.type == "code_inline":
        return el("code", {"class": "md-c"}, token.content)
    if token.type == "image":
        return _image(token, scene)
    name = token.type.removesuffix("_open").removesuffix("_close")
    return _mark(PLAIN_BLOCKS[name], token) if name in PLAIN_BLOCKS else escape(token.content)


def _image(token: Token, scene: Scene) -> Markup:
    hover = token.content
    address = scene.picture(str(token.attrGet("src") or ""))
    if address is None:
        return el("span", {"class": "picture missing", "role": "img", "aria-label": hover}, draw_icon("image"), hover)
    return el("img", {"class": "picture", "src": address, "alt": hover, "title": hover or None, "loading": "lazy"})


def _tag(source: str, waiting: list[tuple[str, str]], out: list[Piece], scene: Scene) -> None:
    tag = read_tag(source)
    if tag is None:
        return
    if tag.ends:
        names = [name for name, _ in waiting]
        if tag.name in names:
            for name, mark in reversed(waiting.copy()):
                waiting.pop()
                out.append(closing(mark))
                if name == tag.name:
                    return
        return
    if waiting and waiting[-1][1] == "":
        return
    html, end = opening(tag, scene)
    out.append(html)
    if end is None:
        return
    if tag.whole:
        out.append(closing(end))
    else:
        waiting.append((tag.name, end))
