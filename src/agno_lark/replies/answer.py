"""A turn's card: while the run goes on, and at its end. Pure: a view goes in, card JSON comes out."""

from dataclasses import dataclass

from agno_lark.locale import Lang, duration, say
from agno_lark.replies.elements import Card, Element, button, card, folded, grey, markdown, plain, words
from agno_lark.replies.parts import PART_BYTES, closed, first_part, json_bytes, showable, split_answer
from agno_lark.targets import FaultReason, RunState, RunView, Step, StepState

__all__ = ["ANSWER_ID", "STOP", "Ending", "FinalPart", "answer_text", "final_parts", "frame", "running_card"]

ANSWER_ID = "answer"
STOP = "turn.stop"
_SHOWN_CHARS = PART_BYTES + 4_000  # more than one part holds: what is beyond does not show while it streams
_PANEL_BYTES = 4_000
_DETAIL_BYTES = 3_000
_NAME_BYTES, _ARGS_BYTES = 300, 600
_MARKS = {
    StepState.RUNNING: "…",
    StepState.DONE: "✓",
    StepState.FAILED: "✗",
    StepState.STOPPED: "–",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a turn ended. `unknown`: the run was handed over, and nobody can tell whether it arrived."""

    view: RunView
    elapsed_ms: int
    fault: FaultReason | str | None = None
    details: str = ""
    unknown: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalPart:
    """One part of a complete answer, at four heights of a ladder: where `card` is refused, `plain` says the same
    without any Markdown, `text` is no card at all, and `stub` is what then stands in the running card's place."""

    card: Card
    plain: Card
    text: str
    stub: Card


def answer_text(view: RunView, lang: Lang) -> str:
    """What stands in the answer's place while the run goes on: the first part of a long answer, fences closed."""
    if not view.text.strip():
        return say("turn.thinking", lang)
    text, goes_on = first_part(showable(view.text[:_SHOWN_CHARS]))
    return f"{closed(text)}\n\n{say('turn.more', lang)}" if goes_on else closed(text)


def frame(view: RunView, *, stopping: bool) -> tuple[object, ...]:
    """All of a running card but its text, for comparing: where it differs, the whole card has to be written."""
    return (tuple((step.name, step.args, step.state) for step in view.steps), stopping)


def running_card(view: RunView, *, turn_id: str, lang: Lang, stopping: bool = False, streaming: bool = True) -> Card:
    """The card while the run goes on: steps folded away, the text so far, and a button to stop it."""
    elements = _panels(view, lang)
    elements.append(markdown(answer_text(view, lang), ANSWER_ID))
    if stopping:
        elements.append(markdown(grey(say("turn.stopping", lang)), "state", small=True))
    else:
        elements.append(button(say("turn.stop", lang), "stop", {"op": STOP, "turn": turn_id}))
    return card(elements, summary=say("turn.summary.running", lang), streaming=streaming)


def final_parts(ending: Ending, lang: Lang) -> list[FinalPart]:
    """The complete answer, in as many parts as it takes. The first replaces the running card."""
    texts = split_answer(showable(ending.view.text))
    summary = _summary(ending, lang)
    return [_final_part(ending, lang, text, summary, number, len(texts)) for number, text in enumerate(texts, 1)]


def _final_part(ending: Ending, lang: Lang, text: str, summary: str, number: int, count: int) -> FinalPart:
    is_last = number == count
    state = _state_line(ending, lang) if is_last else say("turn.part", lang, part=number, parts=count)
    state_element = markdown(grey(state), "state", small=True)
    sentences = _sentences(ending, lang) if is_last else []
    notes = [markdown(sentence, f"note{index}") for index, sentence in enumerate(sentences)]
    rich = _panels(ending.view, lang) if number == 1 else []
    rich += [markdown(text, ANSWER_ID)] if text else []
    rich += notes
    if is_last and ending.details:
        rich.append(folded(say("fault.details", lang), "details", _clipped(ending.details, _DETAIL_BYTES)))
    return FinalPart(
        card=card([*rich, state_element], summary=summary),
        plain=card([*([words(text, ANSWER_ID)] if text else []), *notes, state_element], summary=summary),
        text="\n\n".join(piece for piece in (text, *sentences, state) if piece),
        stub=card([state_element], summary=summary),
    )


def _panels(view: RunView, lang: Lang) -> list[Element]:
    if not view.steps:
        return []
    title = say("turn.steps", lang, count=len(view.steps))
    return [folded(title, "steps", _step_lines(view.steps))]


def _clipped(text: str, most_bytes: int) -> str:
    """Words of others in a place of their own: nothing in them is Markdown, and they take no more room than given."""
    shown = showable(text[:most_bytes])
    while json_bytes(plain(shown)) > most_bytes:
        shown = shown[: len(shown) * 3 // 4]
    return plain(shown) + ("…" if len(shown) < len(text) else "")


def _step_lines(steps: tuple[Step, ...]) -> str:
    """The newest steps that fit, oldest of them first."""
    lines: list[str] = []
    size = 0
    for step in reversed(steps):
        indent = "    " if step.parent else ""
        args = f" <font color='grey'>{_clipped(step.args, _ARGS_BYTES)}</font>" if step.args else ""
        line = f"{indent}- {_MARKS[step.state]} {_clipped(step.name, _NAME_BYTES)}{args}"
        size += json_bytes(line) + 2
        if size > _PANEL_BYTES and lines:
            lines.append("- …")
            break
        lines.append(line)
    return "\n".join(reversed(lines))


def _sentences(ending: Ending, lang: Lang) -> list[str]:
    """What has to be said besides the answer itself."""
    if ending.unknown:
        return [say("turn.unknown.body", lang)]
    if ending.fault is not None:
        return [say(f"fault.{ending.fault}", lang)]
    view = ending.view
    if view.state is RunState.PAUSED:
        return [say("turn.paused.body", lang, kind=_clipped(view.pause_type or "?", _NAME_BYTES))]
    if view.text.strip():
        return []
    return [say("turn.cancelled.body" if view.state is RunState.CANCELLED else "turn.empty", lang)]


_STATES = {RunState.PAUSED: "turn.paused", RunState.CANCELLED: "turn.cancelled", RunState.COMPLETED: "turn.done"}


def _state_word(ending: Ending, lang: Lang) -> str:
    if ending.unknown:
        return say("turn.unknown", lang)
    key = "turn.failed" if ending.fault is not None else _STATES.get(ending.view.state, "turn.failed")
    return say(key, lang)


def _state_line(ending: Ending, lang: Lang) -> str:
    facts = [_state_word(ending, lang), duration(ending.elapsed_ms, lang)]
    tokens = (ending.view.input_tokens or 0) + (ending.view.output_tokens or 0)
    if tokens:
        facts.append(say("turn.tokens", lang, count=f"{tokens:,}"))
    if ending.view.run_id:
        facts.append(say("turn.run", lang, run=ending.view.run_id[:8]))
    return " · ".join(facts)


def _summary(ending: Ending, lang: Lang) -> str:
    first = next(
        (line.strip("#*>- `") for line in showable(ending.view.text).splitlines() if line.strip("#*>- `|")), ""
    )
    return first[:60] if first and ending.fault is None else _state_word(ending, lang)
