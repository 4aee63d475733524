"""A bot made of the real SDK's `FeishuChannel`, run by test_sandbox_real_sdk.py in a process of its own.

    python sdk_bot.py URL APP_ID APP_SECRET

The SDK's WebSocket client holds a module-global event loop, so it cannot share the test's process. One JSON line on
stdout for each thing that happened; a line on stdin ends it.
"""

import asyncio
import json
import sys
from typing import Any

from lark_channel import FeishuChannel
from lark_channel.channel.config import SafetyConfig, TextBatchConfig
from lark_channel.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse


def tell(kind: str, **facts: Any) -> None:
    sys.stdout.write(json.dumps({"kind": kind, **facts}) + "\n")
    sys.stdout.flush()


class Channel(FeishuChannel):  # type: ignore[misc]
    """Answers clicks with a toast; the SDK itself only ever answers with nothing."""

    def _on_p2_card_action_trigger(self, data: Any) -> Any:
        super()._on_p2_card_action_trigger(data)
        return P2CardActionTriggerResponse({"toast": {"type": "success", "content": "the SDK heard you"}})


async def main(url: str, app_id: str, app_secret: str) -> None:
    channel = Channel(
        app_id=app_id,
        app_secret=app_secret,
        domain=url,
        safety=SafetyConfig(text_batch=TextBatchConfig(delay_ms=10)),
    )

    async def on_message(message: Any) -> None:
        facts = {"text": message.content_text, "message_id": message.message_id, "chat_id": message.chat_id}
        facts["mentioned_bot"] = message.mentioned_bot
        facts["thread_id"] = message.conversation.thread_id
        for resource in message.resources:
            data = await channel.download_resource(resource.file_key, resource.type, message.message_id)
            facts["downloaded"] = len(data or b"")
        tell("message", **facts)
        if "stream" in message.content_text:

            async def produce(controller: Any) -> None:
                for word in ("alpha ", "beta ", "gamma"):
                    await controller.append(word)
                    await asyncio.sleep(0.15)

            result = await channel.stream(message.chat_id, {"markdown": produce})
        elif "card" in message.content_text:
            button = {
                "tag": "button",
                "text": {"tag": "plain_text", "content": "Press"},
                "behaviors": [{"type": "callback", "value": {"op": "press"}}],
            }
            card = {"schema": "2.0", "body": {"elements": [button]}}
            result = await channel.send(message.chat_id, {"card": card})
        else:
            await channel.add_reaction(message.message_id, "OK")
            result = await channel.reply(message, {"text": f"you said {message.content_text}"})
        tell("sent", success=result.success, message_id=result.message_id, error=str(result.error))

    async def on_click(event: Any) -> None:
        tell("click", message_id=event.message_id, value=event.action.value, operator=event.operator.open_id)

    channel.on("message", on_message)
    channel.on("cardAction", on_click)
    await channel.start_background(timeout=20)
    identity = await channel.resolve_bot_identity()
    tell("ready", bot=identity.open_id if identity else None)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await channel.stop_background()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
