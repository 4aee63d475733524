"""Feishu's markdown as HTML (cards/README.md, "Markdown component")."""

import pytest

from agno_lark.sandbox.page.html import safe_url
from agno_lark.sandbox.page.markdown import lark_md, markdown
from agno_lark.sandbox.page.scene import Face, Scene
from tests.page_reading import read_html

LIN = "ou_lin"
SCENE = Scene(
    language="en",
    faces={LIN: Face(open_id=LIN, name="林悦")},
    picture=lambda key: f"/sandbox/page/resources/{key}" if key == "img_known" else None,
)


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("**b** *i* ~~s~~", '<p class="md-p"><strong>b</strong> <em>i</em> <s>s</s></p>'),
        ("`c`", '<p class="md-p"><code class="md-c">c</code></p>'),
        ("one\ntwo", '<p class="md-p">one<br>two</p>'),
        ("one\n\ntwo", '<p class="md-p">one</p><p class="md-p">two</p>'),
        ("### t", '<p class="md-h md-h3" role="heading" aria-level="3">t</p>'),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("- a\n    - b", "<ul><li>a<ul><li>b</li></ul></li></ul>"),
        ("> q", '<blockquote><p class="md-p">q</p></blockquote>'),
        ("a\n\n---", '<p class="md-p">a</p><hr>'),
        ("&lt;b&gt; &#42;", '<p class="md-p">&lt;b&gt; *</p>'),
        (":DONE: :no_such:", '<p class="md-p">✅ :no_such:</p>'),
        (
            "<font color='red'>**r**</font>",
            '<p class="md-p"><span class="font" style="color:var(--red)"><strong>r</strong></span></p>',
        ),
        ("<font color='nope'>r</font>", '<p class="md-p"><span class="font">r</span></p>'),
        ("<text_tag color='blue'>new</text_tag>", '<p class="md-p"><span class="text-tag hue-blue">new</span></p>'),
        ("<number_tag>7</number_tag>", '<p class="md-p"><span class="number-tag">7</span></p>'),
        (f"<at id={LIN}></at>", '<p class="md-p"><span class="mention">@林悦</span></p>'),
        ("<at id=all></at>", '<p class="md-p"><span class="mention">@everyone</span></p>'),
        ("a<br>b<br/>c", '<p class="md-p">a<br>b<br>c</p>'),
        ("<nobody>inside</nobody>", '<p class="md-p">inside</p>'),
        ("<font color='r", '<p class="md-p">&lt;font color=&#39;r</p>'),
    ],
)  # fmt: skip
def test_markdown_becomes_html(source: str, html: str) -> None:
    assert str(markdown(source, SCENE)) == html


def test_a_link_opens_elsewhere_and_only_on_the_web() -> None:
    html = str(
        markdown("[a](https://x.example/1) https://x.example/2. <link url='https://x.example/3'>l</link>", SCENE)
    )
    assert read_html(html).links == ["https://x.example/1", "https://x.example/2", "https://x.example/3"]
    assert html.count('target="_blank" rel="noopener noreferrer"') == 3
    for bad in (
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "//x.example",
        "lark://x",
        "https:",
        "vbscript:x",
    ):
        reading = read_html(str(markdown(f"[text]({bad}) <a href='{bad}'>more</a>", SCENE)))
        assert reading.links == []
        assert "text" in reading.text
        assert "more" in reading.text


def test_a_table_and_a_fence_keep_their_text() -> None:
    html = str(markdown("|a|b|\n|:-|-:|\n|1|`x`|\n\n```PYTHON\nif a < b:\n  pass\n```", SCENE))
    assert '<td class="to-right"><code class="md-c">x</code></td>' in html
    assert "<code>if a &lt; b:\n  pass</code>" in html
    assert "<span>python</span>" in html


def test_a_picture_is_shown_by_its_key_and_never_by_an_address() -> None:
    assert read_html(str(markdown("![p](img_known)", SCENE))).links == ["/sandbox/page/resources/img_known"]
    for source in ("img_gone", "https://x.example/p.png", "data:image/png;base64,AAAA"):
        reading = read_html(str(markdown(f"![what it shows]({source})", SCENE)))
        assert reading.links == []
        assert "what it shows" in reading.text


def test_marks_crossing_each_other_stay_inside_their_paragraph() -> None:
    html = str(markdown("<font color='red'>a **b</font> c**\n\nnext", SCENE))
    assert html.count("<span") == html.count("</span>")
    assert html.endswith('<p class="md-p">next</p>')


def test_the_inside_of_a_mention_is_not_the_senders_to_write() -> None:
    assert "evil" not in markdown("<at id=ou_x>**evil** <b>evil</b></at> after", SCENE)
    assert "after" in markdown("<at id=ou_x>evil</at> after", SCENE)


def test_lark_md_knows_no_blocks() -> None:
    html = str(lark_md("# no\n- list\n**bold** [l](https://x.example) <at id=all></at>", SCENE))
    assert "# no<br>- list<br><strong>bold</strong>" in html
    assert "<ul" not in html
    assert "@everyone" in html


@pytest.mark.parametrize("address", ["https://a.example", "http://127.0.0.1:1/x?y=1#z", " https://a.example "])
def test_web_addresses_may_be_followed(address: str) -> None:
    assert safe_url(address) == address.strip()


@pytest.mark.parametrize(
    "address", [None, 3, "", "a.example", "https://", "java\nscript:x", "https://a b", "http://[", "JAVASCRIPT:x"]
)
def test_other_addresses_may_not(address: object) -> None:
    assert safe_url(address) is None
