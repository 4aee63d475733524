"""A local Feishu: what the bridge talks to when there is no real one.

In: the bot's OpenAPI calls and WebSocket frames; what people do, by the page, `agno_lark.testing` or the control
endpoint. Out: events, answers with the platform's own codes, and a record of everything a person would see.
Nothing survives the process: a crash empties this world.
"""

__all__: list[str] = []
