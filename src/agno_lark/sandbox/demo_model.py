"""A model without a key: carries out `demo_script` as agno asks for it, and notes each time it was asked.

Imports agno (about 1 s): only for the demo AgentOS's own process, and for tests.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, override

from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse

from agno_lark.sandbox.demo_calls import ModelCalls
from agno_lark.sandbox.demo_script import Ask, Call, Fail, Piece, Role, Say, Think, Wait, script

__all__ = ["DemoModel", "DemoModelFailed", "ModelCalls"]

_HISTORY_END = "</workflow_history_context>"
_HISTORY_INPUT = "User input: "


class DemoModelFailed(RuntimeError):
    """What the model raises when it is told to fail."""


class DemoModel(Model):
    """Answers by rule. `instant`: every answer is "ok" at once, for benchmarks."""

    def __init__(self, *, role: Role, calls: ModelCalls, member_name: str = "", instant: bool = False) -> None:
        super().__init__(id=f"demo-{role.value}", name="demo", provider="agno-lark")
        self.role = role
        self.calls = calls
        self.member_name = member_name
        self.instant = instant

    @override
    async def ainvoke_stream(self, messages: list[Message], **kwargs: Any) -> AsyncIterator[ModelResponse]:
        run = kwargs.get("run_response")
        metadata = getattr(run, "metadata", None) or {}
        self.calls.note(
            session_id=str(getattr(run, "session_id", None) or ""),
            run_id=str(getattr(run, "run_id", None) or ""),
            turn_id=str(metadata.get("turn_id", "")),
            role=self.role.value,
        )
        if self.instant:
            yield ModelResponse(role="assistant", content="ok")
            return
        for piece in script(_ask(messages, self.role, self.member_name)):
            async for response in _carry_out(piece):
                yield response

    @override
    async def ainvoke(self, messages: list[Message], **kwargs: Any) -> ModelResponse:
        deltas = [delta async for delta in self.ainvoke_stream(messages, **kwargs)]
        return ModelResponse(
            role="assistant",
            content="".join(delta.content or "" for delta in deltas),
            tool_calls=[call for delta in deltas for call in delta.tool_calls],
        )

    @override
    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError("the demo model answers in async runs only")

    @override
    def invoke_stream(self, *args: Any, **kwargs: Any) -> Iterator[ModelResponse]:
        raise NotImplementedError("the demo model answers in async runs only")

    @override
    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        return response if isinstance(response, ModelResponse) else ModelResponse(content=str(response))

    @override
    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return self._parse_provider_response(response)


async def _carry_out(piece: Piece) -> AsyncIterator[ModelResponse]:
    match piece:
        case Say(text=text, after_s=after_s):
            await asyncio.sleep(after_s)
            yield ModelResponse(role="assistant", content=text)
        case Think(text=text, after_s=after_s):
            await asyncio.sleep(after_s)
            yield ModelResponse(role="assistant", reasoning_content=text)
        case Wait(for_s=for_s):
            await asyncio.sleep(for_s)
        case Fail(message=message):
            raise DemoModelFailed(message)
        case Call(tool=tool, args=args):
            function = {"name": tool, "arguments": json.dumps(args, ensure_ascii=False)}
            call = {"id": f"call_{uuid.uuid4().hex[:12]}", "type": "function", "function": function}
            yield ModelResponse(role="assistant", tool_calls=[call])


def _ask(messages: Sequence[Message], role: Role, member_name: str) -> Ask:
    said = [(n, _text(message)) for n, message in enumerate(messages) if message.role == "user"]
    at, last = said[-1] if said else (-1, "")
    earlier = [text for _, text in said[:-1]]
    if last.lstrip().startswith("<workflow_history_context>") and _HISTORY_END in last:
        history, last = last.split(_HISTORY_END, 1)
        lines = history.splitlines()
        earlier += [line.removeprefix(_HISTORY_INPUT) for line in lines if line.startswith(_HISTORY_INPUT)]
    results = [_text(message) for message in messages[at + 1 :] if message.role == "tool"]
    return Ask(message=last.strip(), earlier=earlier, results=results, role=role, member_name=member_name)


def _text(message: Message) -> str:
    return message.content if isinstance(message.content, str) else ""
