"""What the demo agents say: rules over the last message, in Chinese and English. Pure; no agno in here.

A script is a tuple of pieces, carried out in order by `demo_model.DemoModel`. The same input gives the same script, so
that a test can know the answer beforehand.
"""

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["Ask", "Call", "Fail", "Piece", "Role", "Say", "Think", "Wait", "calculate", "forecast", "script"]


class Role(StrEnum):
    """Who speaks."""

    AGENT = "agent"  # the demo agent, and the first step of the demo workflow
    LEADER = "leader"  # the team's leader: hands plain questions to its members
    MEMBER = "member"
    REVIEWER = "reviewer"  # the workflow's second step: passes on what it was given


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """One text delta, after a pause of `after_s` seconds."""

    text: str
    after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Think:
    """One delta of reasoning."""

    text: str
    after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Silence for so long."""

    for_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call; ends this request to the model."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The model raises."""

    message: str


Piece = Say | Think | Wait | Call | Fail


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What the model is asked. `earlier`: the person's former messages of this session, oldest first.

    `results`: what the tools called since the last message answered, in order.
    """

    message: str
    earlier: Sequence[str] = ()
    results: Sequence[str] = ()
    role: Role = Role.AGENT
    member_name: str = ""


_TOKEN_S = 0.015
_COUNT_S = 0.3
_FAST_COUNT_S = 0.1
_COUNT_LIMIT = 2000


def script(ask: Ask) -> tuple[Piece, ...]:
    """The pieces of the next answer to `ask`."""
    text = ask.message.strip()
    if ask.role is Role.REVIEWER:
        return tuple(Say(text=token) for token in _tokens(text)) or (Say(text="…"),)
    if "/bench" in text.lower():
        return (Say(text="ok"),)
    if ask.role is Role.MEMBER:
        return _member(ask)
    for words, answer in _RULES:
        if any(word in text.lower() for word in words):
            return answer(ask)
    return _delegate(ask) if ask.role is Role.LEADER else _echo(ask)


def calculate(expression: str) -> str:
    """The value of an arithmetic expression of numbers, + - * / and brackets; a sentence when it is none."""
    try:
        return f"{_value(ast.parse(expression, mode='eval').body):g}"
    except (ValueError, SyntaxError, ZeroDivisionError, OverflowError, RecursionError):
        return "not a number"


def forecast(city: str) -> str:
    """The weather in a city, made up, the same every time; in the language of the city's name."""
    total = sum(map(ord, city))
    degrees = 15 + total % 15
    if _zh(city):
        return f"{city}{('晴', '多云', '小雨')[total % 3]}，{degrees} °C"
    return f"{city}: {('sunny', 'cloudy', 'light rain')[total % 3]}, {degrees} °C"


_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError(ast.dump(node))


def _zh(text: str) -> bool:
    return re.search(r"[\u4e00-\u9fff]", text) is not None


def _tokens(text: str) -> list[str]:
    """Pieces as a model streams them: a word with what follows it, or a single character."""
    return re.findall(r"[A-Za-z0-9_'.,*#`|-]+[ ]?|.", text, re.DOTALL)


def _stream(text: str) -> tuple[Piece, ...]:
    return tuple(Say(text=token, after_s=_TOKEN_S) for token in _tokens(text))


def _echo(ask: Ask) -> tuple[Piece, ...]:
    text = ask.message.strip()
    number = len(ask.earlier) + 1
    if _zh(text):
        return _stream(f"你好！你说的是：{text}\n\n（这是本次会话的第 {number} 条消息。）")
    return _stream(f"Hello! You said: {text}\n\n(Message {number} of this session.)")


def _recall(ask: Ask) -> tuple[Piece, ...]:
    zh = _zh(ask.message)
    if not ask.earlier:
        return _stream("这是你的第一条消息。" if zh else "This is your first message.")
    head = "你之前说过：" if zh else "Earlier you said:"
    return _stream("\n".join([head, "", *(f"{n}. {said}" for n, said in enumerate(ask.earlier, 1))]))


def _repeat(_: Ask) -> tuple[Piece, ...]:
    return (Say(text="1"), Say(text="1", after_s=0.05), Say(text="0", after_s=0.05))


def _fail(ask: Ask) -> tuple[Piece, ...]:
    reason = "演示模型按要求出错了" if _zh(ask.message) else "the demo model failed, as asked"
    return (Say(text="这就" if _zh(ask.message) else "Well, "), Fail(message=reason))


def _count(ask: Ask) -> tuple[Piece, ...]:
    until = min(_number(ask.message, 30), _COUNT_LIMIT)
    step_s = _FAST_COUNT_S if any(word in ask.message.lower() for word in ("fast", "快")) else _COUNT_S
    return tuple(Say(text=f"{n} ", after_s=step_s) for n in range(1, until + 1))


def _silence(ask: Ask) -> tuple[Piece, ...]:
    silent_s = min(_number(ask.message, 5), _COUNT_LIMIT)
    before, after = ("我想一想……", "好了。") if _zh(ask.message) else ("Let me see... ", "done.")
    return (Say(text=before), Wait(for_s=silent_s), Say(text=after))


def _think(ask: Ask) -> tuple[Piece, ...]:
    zh = _zh(ask.message)
    thought = "先看问题，再看有什么可用，最后作答。" if zh else "First the question, then what is known."
    answer = "想好了：四十二。" if zh else "I have thought about it: forty-two."
    return (*(Think(text=token, after_s=_TOKEN_S) for token in _tokens(thought)), *_stream(answer))


def _weather(ask: Ask) -> tuple[Piece, ...]:
    zh = _zh(ask.message)
    if ask.results:
        return _stream(f"查到了：{ask.results[-1]}。祝你一天愉快！" if zh else f"Here it is: {ask.results[-1]}. Enjoy!")
    found = re.search(r"(?:weather|forecast)\s+(?:in|for|at)\s+([A-Za-z ]+)", ask.message, re.IGNORECASE)
    chinese = re.search(r"([\u4e00-\u9fff]{2,4}?)(?:今天|明天|的)?天气", ask.message)
    city = found[1].strip() if found else chinese[1] if chinese else ("北京" if zh else "Paris")
    said = f"我来查一下{city}的天气。\n\n" if zh else f"Let me look up the weather in {city}.\n\n"
    return (*_stream(said), Call(tool="get_weather", args={"city": city}))


def _calculate(ask: Ask) -> tuple[Piece, ...]:
    zh = _zh(ask.message)
    if ask.results:
        return _stream(f"结果是 {ask.results[-1]}。" if zh else f"The result is {ask.results[-1]}.")
    found = re.search(r"[-(]*\d[\d+\-*/(). ]*", ask.message)
    expression = found[0].strip() if found else "6*7"
    said = f"我来算一下 {expression}。\n\n" if zh else f"Let me work out {expression}.\n\n"
    return (*_stream(said), Call(tool="calculator", args={"expression": expression}))


def _markdown(ask: Ask) -> tuple[Piece, ...]:
    return _stream(_LONG_ZH if _zh(ask.message) else _LONG_EN)


def _delegate(ask: Ask) -> tuple[Piece, ...]:
    """The leader asks one member after the other, then sums up."""
    zh, task = _zh(ask.message), ask.message.strip()
    if len(ask.results) < len(_MEMBERS):
        member_id = _MEMBERS[len(ask.results)]
        said = ("我请团队来看看。\n\n" if zh else "Let me ask the team.\n\n") if not ask.results else ""
        return (*_stream(said), Call(tool="delegate_task_to_member", args={"member_id": member_id, "task": task}))
    gathered = "\n".join(f"- {result}" for result in ask.results)
    return _stream(f"团队的意见：\n\n{gathered}" if zh else f"The team's view:\n\n{gathered}")


def _member(ask: Ask) -> tuple[Piece, ...]:
    name, task = ask.member_name or "member", ask.message.strip().splitlines()[0] if ask.message.strip() else ""
    return _stream(f"{name}：关于“{task}”，我看可以。" if _zh(task) else f"{name}: about “{task}”, I would say yes.")


def _number(text: str, default: int) -> int:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else default


_MEMBERS = ("demo-researcher", "demo-writer")

_RULES: tuple[tuple[tuple[str, ...], Callable[[Ask], tuple[Piece, ...]]], ...] = (
    (("what did i say", "我说了什么", "我说过什么"), _recall),
    (("repeat", "重复"), _repeat),
    (("fail", "失败", "出错"), _fail),
    (("slow", "count", "慢", "数到"), _count),
    (("silence", "silent", "沉默"), _silence),
    (("think", "思考"), _think),
    (("weather", "forecast", "天气"), _weather),
    (("calculat", "计算", "算一下"), _calculate),
    (("markdown", "long", "长文"), _markdown),
)

_LONG_EN = """# A short tour

This answer is **long** on purpose: it comes *token by token*, and the card grows with it.

## A list

1. A message is accepted, and written down before it is acknowledged.
2. A run is started on the AgentOS.
3. Its events become this card.
   - steps are folded away
   - the text is never cut

## Some code

```python
def greet(name: str) -> str:
    return f"Hello, {name}!"
```

## A table

| Part | Job | Survives a crash |
|---|---|---|
| intake | decides what enters | yes |
| turns | carries a message to its run | yes |
| replies | shows what happens | yes |

> A quotation, and a [link](https://docs.agno.com) to finish.

That is all. Ask for the `weather in Rome`, or for something `slow` and press Stop.
"""

_LONG_ZH = """# 简短的导览

这段回答**故意写得长**：它*逐字*到来，卡片随之变长。

## 列表

1. 消息先落盘，再确认。
2. 在 AgentOS 上开始一次运行。
3. 运行的事件变成这张卡片。
   - 步骤折叠起来
   - 文字从不截断

## 代码

```python
def greet(name: str) -> str:
    return f"你好，{name}！"
```

## 表格

| 部分 | 职责 | 崩溃后仍在 |
|---|---|---|
| intake | 决定谁能进来 | 是 |
| turns | 把消息带到运行 | 是 |
| replies | 展示经过 | 是 |

> 一段引用，最后是一个[链接](https://docs.agno.com)。

就这些。可以问我`上海天气`，或者让我`慢慢数到 20`，再按停止。
"""
