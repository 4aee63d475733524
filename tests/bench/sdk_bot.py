"""The same work through the SDK: `FeishuChannel` with its default settings, and a handler as its users write it.

    python tests/bench/sdk_bot.py FEISHU_URL APP_ID APP_SECRET AGENTOS_URL

The handler posts to the AgentOS with one kept-alive httpx client and replies with the whole text. Prints `ready -`;
ends with standard input.
"""

import asyncio
import json
import sys
import uuid
from typing import Any

import httpx
from lark_channel import FeishuChannel

AGENT_ID = "demo-agent"


async def ask(client: httpx.AsyncClient, agentos_url: str, message: Any) -> str:
    """The agent's whole answer."""
    form = {
        "message": message.content_text,
        "session_id": message.chat_id,
        "run_id": uuid.uuid4().hex,
        "stream": "true",
        "background": "true",
    }
    text = ""
    async with client.stream("POST", f"{agentos_url}/agents/{AGENT_ID}/runs", data=form, timeout=60) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                event = json.loads(line[6:])
                if event.get("event") == "RunContent":
                    text += event.get("content") or ""
    return text


async def main(feishu_url: str, app_id: str, app_secret: str, agentos_url: str) -> None:
    channel = FeishuChannel(app_id=app_id, app_secret=app_secret, domain=feishu_url)
    clients: list[httpx.AsyncClient] = []

    async def on_message(message: Any) -> None:
        if not clients:  # made on the channel's own event loop
            clients.append(httpx.AsyncClient(limits=httpx.Limits(max_connections=None), trust_env=False))
        await channel.reply(message, {"text": await ask(clients[0], agentos_url, message)})

    channel.on("message", on_message)
    await channel.start_background(timeout=30)
    sys.stdout.write("ready -\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await channel.stop_background()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
