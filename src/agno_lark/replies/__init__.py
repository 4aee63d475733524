"""What the person sees: a card that grows while the run goes on, and is complete at the end.

Enters: the run as it looks now (`RunView`), and the place it answers. Leaves: cards, and where Feishu refuses a card, a
plainer one, a text or a file: never nothing, never twice. Survives a crash: what must still be shown (table outbox),
card id, message id and the highest sequence in use (table runs); every send carries a uuid made from the turn.
"""

from agno_lark.replies.answer import DISMISS, RETRY, STOP, FinalPart, final_parts, running_card
from agno_lark.replies.ending import Ending, Resolution, ending_to_json, kept_ending, view_from_json
from agno_lark.replies.notes import note_card
from agno_lark.replies.outbox import (
    REPLY,
    Deliverer,
    cancel_reply,
    forget_replies,
    put_answer,
    put_card,
    reply_lane,
    send_again,
    waiting_replies,
)
from agno_lark.replies.parts import showable, split_answer
from agno_lark.replies.place import Place
from agno_lark.replies.poster import Poster
from agno_lark.replies.reactions import Reactions
from agno_lark.replies.writer import CardMemory, CardWriter, Progress

__all__ = [
    "DISMISS",
    "REPLY",
    "RETRY",
    "STOP",
    "CardMemory",
    "CardWriter",
    "Deliverer",
    "Ending",
    "FinalPart",
    "Place",
    "Poster",
    "Progress",
    "Reactions",
    "Resolution",
    "cancel_reply",
    "ending_to_json",
    "final_parts",
    "forget_replies",
    "kept_ending",
    "note_card",
    "put_answer",
    "put_card",
    "reply_lane",
    "running_card",
    "send_again",
    "showable",
    "split_answer",
    "view_from_json",
    "waiting_replies",
]
