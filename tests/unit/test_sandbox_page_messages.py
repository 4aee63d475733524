"""Messages as rows: text, posts, pictures, files, quotes, reactions, recalls, topics, the list of chats."""

from typing import Any

import pytest

from agno_lark.sandbox.page.labels import examples_for, labels_for
from agno_lark.sandbox.page.rows import draw_row, preview, scene_for
from agno_lark.sandbox.page.view import chat_of, chats_of, conversation, person_of
from agno_lark.sandbox.records import Chat, Message
from agno_lark.sandbox.world import UnknownThing, World
from tests.page_fixtures import LIN, MARTA, TOM, ScriptedBot, markdown_card
from tests.page_reading import Reading, read_html


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def team(world: World) -> Chat:
    return world.chat("Team")


def row(world: World, message: Message, who: str = MARTA) -> str:
    person = world.person(who)
    return str(draw_row(world, message, person, scene_for(world, person)))


def body_of(world: World, message: Message, who: str = MARTA) -> str:
    return row(world, message, who).split('<div class="bubble">')[1].split('<div class="tools"')[0]


async def test_a_persons_text_is_escaped_with_lines_links_and_names(world: World, team: Chat) -> None:
    text = "<b>hi</b> @Helper\nsee https://x.example/a?b=1&c=2, ok"
    message = await world.write(TOM, team.chat_id, text, mention_bot=True)
    html = body_of(world, message)
    assert (
        '&lt;b&gt;hi&lt;/b&gt; <span class="mention">@Helper</span><br>see <a href="https://x.example/a?b=1&amp;c=2"'
        in html
    )
    assert ">https://x.example/a?b=1&amp;c=2</a>, ok" in html


async def test_a_tenth_mention_is_not_the_first(world: World, team: Chat) -> None:
    message = await world.write(TOM, team.chat_id, "@Helper", mention_bot=True)
    message.content["text"] = "@_user_10 @_user_1 @_all"
    html = body_of(world, message)
    assert '@_user_10 <span class="mention">@Helper</span> <span class="mention">@everyone</span>' in html


def test_the_bots_text_keeps_its_styles_and_no_other_markup(world: World, team: Chat) -> None:
    person = world.person(TOM)
    sent = {"text": f'<b>Bold</b> <at user_id="{person.open_id}">x</at> <script>alert(1)</script> <i>open'}
    html = body_of(world, world.bot_message(team, "text", sent))
    assert f'<b>Bold</b> <span class="mention">@{TOM}</span> &lt;script&gt;alert(1)&lt;/script&gt; <i>open</i>' in html


async def test_a_persons_post_shows_all_its_kinds_of_nodes(world: World, team: Chat) -> None:
    picture = world.keep(b"\x89PNG", "p.png", kind="image", content_type="image/png")
    post: dict[str, Any] = {
        "title": "Inspection",
        "content": [
            [{"tag": "text", "text": "bold <x>", "style": ["bold", "lineThrough"]}, {"tag": "at", "user_id": "all"}],
            [
                {"tag": "a", "text": "manual", "href": "https://x.example"},
                {"tag": "a", "text": "bad", "href": "javascript:1"},
            ],
            [{"tag": "img", "image_key": picture.key}, {"tag": "img", "image_key": "img_gone"}],
            [{"tag": "emotion", "emoji_type": "THUMBSUP"}, {"tag": "hr"}, {"tag": "media", "file_key": "f"}],
            [{"tag": "code_block", "language": "PYTHON", "text": "a < b"}],
        ],
    }
    html = body_of(world, await world.write_post(TOM, team.chat_id, post))
    reading = read_html(html)
    assert '<h3 class="post-title">Inspection</h3>' in html
    assert "<s><b>bold &lt;x&gt;</b></s>" in html
    assert reading.links == [
        "https://x.example",
        f"/sandbox/page/resources/{picture.key}",
        f"/sandbox/page/resources/{picture.key}",
    ]
    for text in ("@everyone", "bad", "👍", "media", "a < b"):
        assert text in reading.text
    assert reading.problems == []


def test_the_bots_post_is_read_in_the_lookers_language(world: World, team: Chat) -> None:
    sent = {
        locale: {"title": title, "content": [[{"tag": "md", "text": "**md**"}]]}
        for locale, title in (("zh_cn", "标题"), ("en_us", "Title"))
    }
    message = world.bot_message(team, "post", sent)
    assert "Title" in body_of(world, message, MARTA)
    assert "标题" in body_of(world, message, LIN)
    assert "<strong>md</strong>" in body_of(world, message)


async def test_files_and_pictures_can_be_taken_away(world: World, team: Chat) -> None:
    file = await world.send_file(TOM, team.chat_id, b"x" * 2048, "<notes>.txt")
    reading = read_html(row(world, file))
    assert "<notes>.txt" in reading.text
    assert "2.0 KB" in reading.text
    assert reading.links == [f"/sandbox/page/resources/{file.content['file_key']}"]
    image = await world.send_image(TOM, team.chat_id, b"\x89PNG", "p.png")
    assert read_html(row(world, image)).links == [f"/sandbox/page/resources/{image.content['image_key']}"] * 2


@pytest.mark.parametrize(
    ("kind", "word"), [("audio", "Voice message"), ("location", "Location"), ("hologram", "hologram")]
)
async def test_other_kinds_are_named(world: World, team: Chat, kind: str, word: str) -> None:
    message = await world.post(TOM, team.chat_id, kind, {"anything": 1})
    assert word in read_html(row(world, message)).text


async def test_an_answer_quotes_and_a_recall_hides_everything(world: World, team: Chat) -> None:
    first = await world.write(TOM, team.chat_id, "secret plan")
    answer = await world.write(MARTA, team.chat_id, "what?", reply_to=first.message_id)
    assert "Tom Okafor: secret plan" in read_html(row(world, answer)).text.replace("  ", " ")
    await world.recall(TOM, first.message_id)
    for html in (row(world, first), row(world, answer)):
        assert "secret plan" not in html
        assert "Tom Okafor recalled a message" in html
    assert "You recalled a message" in row(world, first, TOM)
    assert "Tom Okafor 撤回了一条消息" in row(world, first, LIN)


async def test_reactions_are_counted_by_name_and_marked_as_mine(world: World, team: Chat) -> None:
    message = await world.write(TOM, team.chat_id, "done")
    await world.react(TOM, message.message_id, "DONE")
    await world.react(MARTA, message.message_id, "DONE")
    await world.react(MARTA, message.message_id, "no<such>")
    html = row(world, message)
    assert "Tom Okafor, Marta Weiss" in html
    assert 'aria-pressed="true"' in html
    assert "[no&lt;such&gt;]" in html
    assert row(world, message, LIN).count('aria-pressed="true"') == 0


async def test_only_ones_own_messages_offer_to_be_recalled(world: World, team: Chat) -> None:
    message = await world.write(TOM, team.chat_id, "mine")
    assert 'data-tool="recall"' in row(world, message, TOM)
    assert 'data-tool="recall"' not in row(world, message, MARTA)
    assert 'data-tool="topic"' in row(world, message)
    await world.write(MARTA, team.chat_id, "in a topic", reply_to=message.message_id, new_topic=True)
    assert 'data-tool="topic"' not in row(world, message)


async def test_an_edited_text_says_so_and_a_card_does_not(world: World, team: Chat) -> None:
    message = world.bot_message(team, "text", {"text": "one"})
    assert "edited" not in read_html(row(world, message)).text
    world.bot_edit(message, {"text": "two"})
    assert "edited" in read_html(row(world, message)).text
    sent, entity = ScriptedBot(world).send(team, markdown_card("a"))
    ScriptedBot(world).change(entity, markdown_card("b"))
    assert "edited" not in read_html(row(world, sent)).text


def test_a_card_stops_typing_when_its_ten_minutes_are_over(world: World, team: Chat) -> None:
    message, _ = ScriptedBot(world).send(team, markdown_card("a", streaming=True))
    assert 'class="typing"' in row(world, message)
    world.clock.advance(601)
    assert 'class="typing"' not in row(world, message)


async def test_topics_gather_their_messages(world: World) -> None:
    topics = world.chat("Topics")
    first = await world.write(TOM, topics.chat_id, "one")
    await world.write(TOM, topics.chat_id, "two")
    await world.write(MARTA, topics.chat_id, "one, again", reply_to=first.message_id)
    html = str(conversation(world, topics, world.person(MARTA)))
    assert html.count("data-thread=") == 2
    text = read_html(html).text
    assert text.index("one, again") < text.index("two")
    assert 'class="quote"' not in html


async def test_the_list_shows_ones_own_chats_with_their_last_words(world: World, team: Chat) -> None:
    await world.write(TOM, team.chat_id, "line one\nline two " + "x" * 200)
    lines = chats_of(world, world.person(MARTA))
    assert [(line.name, line.mode) for line in lines] == [("Helper", "p2p"), ("Team", "group"), ("Topics", "topic")]
    assert lines[0].last == ""
    assert lines[0].kind == "Direct chat"
    assert lines[1].last.startswith("line one line two")
    assert len(lines[1].last) == 80
    assert lines[1].kind == "Group · 3 people"


def test_a_card_is_previewed_by_its_summary(world: World, team: Chat) -> None:
    card = markdown_card("long text")
    card["config"]["summary"] = {"content": "in short"}
    message, _ = ScriptedBot(world).send(team, card)
    person = world.person(MARTA)
    assert preview(world, message, person, scene_for(world, person)) == "in short"


def test_people_and_chats_are_found_by_id_name_or_kind(world: World, team: Chat) -> None:
    marta = person_of(world, MARTA)
    assert person_of(world, None) is marta
    assert person_of(world, None, "zh") is world.person(LIN)
    assert person_of(world, marta.open_id) is marta
    assert chat_of(world, marta, None) is world.direct_chat(marta)
    assert chat_of(world, marta, "group") is team
    assert chat_of(world, marta, team.chat_id) is team
    with pytest.raises(UnknownThing, match="not in the chat"):
        chat_of(world, marta, world.direct_chat(TOM).chat_id)


def test_both_languages_have_every_sentence_with_the_same_gaps() -> None:
    english, chinese = labels_for("en"), labels_for("zh")
    assert english.keys() == chinese.keys()
    gaps = {key: [word for word in ("{bot}", "{name}", "{count}") if word in text] for key, text in english.items()}
    assert gaps == {key: [word for word in ("{bot}", "{name}", "{count}") if word in chinese[key]] for key in chinese}
    assert all(english.values())
    assert all(chinese.values())


def test_examples_come_from_the_address_then_the_world_then_us() -> None:
    class Given:
        examples = {"en": ["from the world"], "zh": ["世界的"]}  # noqa: RUF012 - read only

    assert examples_for("en", ["asked", " "], Given()) == ["asked"]
    assert examples_for("zh", [], Given()) == ["世界的"]
    assert examples_for("en", [], object())[0] == "Hello"
    assert examples_for("zh", [], object())[0] == "你好"
    assert len(examples_for("en", [str(number) for number in range(50)], object())) == 8


def test_a_reading_notices_what_is_unsafe() -> None:
    for bad in (
        "<script>x</script>",
        "<img src='//e'>",
        "<a href='javascript:x'>x</a>",
        "<p onclick='x'>x</p>",
        "<p style='background:url(//e)'>x</p>",
        "<a href='https://e'>x</a>",
    ):
        reading: Reading = read_html(bad)
        assert reading.problems != [], bad
