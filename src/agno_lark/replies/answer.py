"""A turn's card: while the run goes on, and at its end. Pure: a view goes in, card JSON comes out."""

from dataclasses import dataclass

from agno_lark.locale import Lang, duration, say
from agno_lark.replies.elements import Card, Element, button, card, folded, grey, markdown, plain, row, words
from agno_lark.replies.ending import Ending, Resolution
from agno_lark.replies.parts import PART_BYTES, closed, first_part, json_bytes, showable, split_answer
from agno_lark.targets import RunState, RunView, Step, StepState

__all__ = ["ANSWER_ID", "DISMISS", "RETRY", "STOP", "FinalPart", "answer_text", "final_parts", "frame", "running_card"]

ANSWER_ID = "answer"
STOP, RETRY, DISMISS = "turn.stop", "turn.retry", "turn.dismiss"  # what a button asks for: the `op` of its value
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
class FinalPart:
    """One part of a complete answer, at four heights of a ladder: where `card` is refused, `plain` says the same
    without any Markdown, `text` is no card at all, and `stub` is what then stands in the running card's place."""

    card: Card
    plain: Card
    text: str
    stub: Card
    run_id: str = ""


def answer_text(view: RunView, lang: Lang) -> str:
    """What stands in the answer's place while the run goes on: the first part of a long answer, fences closed."""
    if not view.text.strip():
        return say("turn.thinking", lang)
    text, goes_on = first_part(showable(view.text[:_SHOWN_CHARS]))
    return f"{closed(text)}\n\n{say('turn.more', lang)}" if goes_on else closed(text)


def frame(view: RunView, *, stopping: bool) -> tuple[object, ...]:
    """All of a running card but its text, for comparing: where it differs, the whole card has to be written."""
    return (tuple((step.name, step.args, step.state) for step in view.steps), stopping)


def running_card(
    view: RunView, *, turn_id: str, lang: Lang, stopping: bool = False, streaming: bool = True, heading: str = ""
) -> Card:
    """The card while the run goes on: steps folded away, the text so far, and a button to stop it. `heading` is a side
    fact about this turn that stands above all."""
    elements = _heading(heading) + _panels(view, lang)
    elements.append(markdown(answer_text(view, lang), ANSWER_ID))
    if stopping:
        elements.append(markdown(grey(say("turn.stopping", lang)), "state", small=True))
    else:
        elements.append(button(say("turn.stop", lang), "stop", {"op": STOP, "turn": turn_id}))
    return card(elements, summary=say("turn.summary.running", lang), streaming=streaming)


def final_parts(ending: Ending, lang: Lang, heading: str = "") -> list[FinalPart]:
    """The complete answer, in as many parts as it takes. The first replaces the running card."""
    texts = split_answer(showable(ending.view.text))
    return [_final_part(ending, lang, text, heading, number, len(texts)) for number, text in enumerate(texts, 1)]


def _final_part(ending: Ending, lang: Lang, text: str, heading: str, number: int, count: int) -> FinalPart:
    is_first, is_last = number == 1, number == count
    summary = _summary(ending, lang)
    state = _state_line(ending, lang) if is_last else say("turn.part", lang, part=number, parts=count)
    state_element = markdown(grey(state), "state", small=True)
    sentences = _sentences(ending, lang) if is_last else []
    notes = [markdown(sentence, f"note{index}") for index, sentence in enumerate(sentences)]
    choices = _choices(ending, lang) if is_last else []
    head = _heading(heading) if is_first else []
    rich = [*head, *(_panels(ending.view, lang) if is_first else [])]
    rich += [markdown(text, ANSWER_ID)] if text else []
    rich += notes
    if is_last and ending.details:
        rich.append(folded(say("fault.details", lang), "details", _clipped(ending.details, _DETAIL_BYTES)))
    plain_text = [words(text, ANSWER_ID)] if text else []
    told = [say("turn.choices.text", lang)] if choices else []  # where there is no card, there are no buttons
    return FinalPart(
        card=card([*rich, *choices, state_element], summary=summary),
        plain=card([*head, *plain_text, *notes, *choices, state_element], summary=summary),
        text="\n\n".join(piece for piece in (heading if is_first else "", text, *sentences, *told, state) if piece),
        stub=card([state_element], summary=summary),
        run_id=ending.view.run_id,
    )


def _heading(heading: str) -> list[Element]:
    return [markdown(grey(heading), "heading", small=True)] if heading else []


def _choices(ending: Ending, lang: Lang) -> list[Element]:
    """What the person may do about a turn that was left open."""
    if not ending.asks:
        return []
    retry = say("turn.answer_now" if ending.stale else "turn.retry", lang)
    buttons = [
        button(retry, "retry", {"op": RETRY, "turn": ending.turn_id}),
        button(say("turn.dismiss", lang), "dismiss", {"op": DISMISS, "turn": ending.turn_id}),
    ]
    return [row(buttons, "choices")]


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
    said = _body(ending, lang)
    if ending.again:
        said.append(say("turn.sent_again", lang))
    if ending.resolved is not None:
        taken_up = ending.stale and ending.resolved is Resolution.RETRIED
        said.append(say("turn.answered_now" if taken_up else f"turn.{ending.resolved}", lang))
    return said


def _body(ending: Ending, lang: Lang) -> list[str]:
    if ending.unknown:
        kind = "superseded" if ending.superseded else "begun" if ending.begun else "body"
        return [say(f"turn.unknown.{kind}", lang)]
    if ending.stale:
        told = say("turn.stale.body", lang, when=duration(ending.elapsed_ms, lang))
        return [told, say("turn.stale.asks", lang)] if ending.asks else [told]
    if ending.superseded:
        return [say("turn.superseded", lang)]
    if ending.taken_back:
        return [say("turn.taken_back", lang)]
    if ending.fault is not None:
        return [say(f"fault.{ending.fault}", lang), say("turn.failed.hint", lang)]
    view = ending.view
    if view.state is RunState.PAUSED:
        return [say("turn.paused.body", lang, kind=_clipped(view.pause_type or "?", _NAME_BYTES))]
    if view.text.strip():
        return []
    return [say("turn.cancelled.body" if view.state is RunState.CANCELLED else "turn.empty", lang)]


_STATES = {RunState.PAUSED: "turn.paused", RunState.CANCELLED: "turn.cancelled", RunState.COMPLETED: "turn.done"}


def _state_word(ending: Ending, lang: Lang) -> str:
    if ending.unknown or ending.stale:
        return say("turn.unknown" if ending.unknown else "turn.stale", lang)
    key = "turn.failed" if ending.fault is not None else _STATES.get(ending.view.state, "turn.failed")
    return say(key, lang)


def _state_line(ending: Ending, lang: Lang) -> str:
    facts = [_state_word(ending, lang)]
    if not ending.stale:
        facts.append(duration(ending.elapsed_ms, lang))
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
