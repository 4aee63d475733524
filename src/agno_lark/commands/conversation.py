"""/new and /help."""

from collections.abc import Mapping
from typing import Any

from agno_lark.locale import Lang, say
from agno_lark.replies.elements import Card, plain
from agno_lark.replies.notes import note_card
from agno_lark.sessions import raise_generation
from agno_lark.store import Tx
from agno_lark.turns import active_runs

__all__ = ["answer_help", "answer_new", "decide_new"]


def decide_new(tx: Tx, scope: str) -> Mapping[str, Any]:
    """Raise the generation: what is accepted from now on belongs to a new session, on a lane of its own."""
    still_running = bool(active_runs(tx, scope, most=1))
    return {"generation": raise_generation(tx, scope), "still_running": still_running}


def answer_new(decided: Mapping[str, Any], lang: Lang) -> Card:
    return note_card(say("new.still_running" if decided["still_running"] else "new.done", lang))


def answer_help(target_name: str, lang: Lang) -> Card:
    return note_card(say("help.body", lang, target=plain(target_name)), title=say("help.title", lang))
