"""The emoji that says a message was taken, over the lives of a daemon."""

from agno_lark.feishu.api import OpenApi
from agno_lark.replies.reactions import TAKEN, Reactions
from agno_lark.testing import FeishuSandbox

MARTA = "Marta Weiss"


async def test_an_emoji_whose_id_was_lost_with_a_former_life_is_taken_away() -> None:
    remembered: list[str | None] = []

    async def remember(_: str, reaction_id: str | None) -> None:
        remembered.append(reaction_id)

    async with (
        FeishuSandbox() as feishu,
        OpenApi(feishu.app_id, feishu.app_secret, feishu.url) as api,
    ):
        message = await feishu.write(MARTA, feishu.direct_chat(MARTA), "hello")
        await api.add_reaction(message.message_id, TAKEN)  # and the process was killed before it noted the answer
        await Reactions(api, remember).clear("turn", message.message_id, None)
        assert not message.reactions
        assert remembered == [None]


async def test_an_emoji_that_was_refused_is_not_tried_again_at_the_end() -> None:
    async def remember(_: str, reaction_id: str | None) -> None:
        raise AssertionError(f"there is nothing to remember, and certainly not {reaction_id}")

    async with (
        FeishuSandbox() as feishu,
        OpenApi(feishu.app_id, feishu.app_secret, feishu.url) as api,
    ):
        message = await feishu.write(MARTA, feishu.direct_chat(MARTA), "hello")
        feishu.faults.fail("POST /open-apis/im/v1/messages/*/reactions", times=1, status=400, code=231001)
        reactions = Reactions(api, remember)
        reactions.take("turn", message.message_id)
        await reactions.clear("turn", message.message_id, None)
        assert not message.reactions
        assert not feishu.faults.rules, "it was tried once"
