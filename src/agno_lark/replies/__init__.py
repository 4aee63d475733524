"""What the person sees: a card that grows while the run goes on, and is complete at the end.

Enters: the run as it looks now (`RunView`), and the place it answers. Leaves: cards, and where Feishu refuses a card, a
plainer one or a text: never nothing, never twice. Survives a crash: card id, message id and the highest sequence in use
(table runs); every send carries a uuid made from the turn, so sending again shows nothing new.
"""

from agno_lark.replies.answer import STOP, Ending, FinalPart, final_parts, running_card
from agno_lark.replies.notes import note_card
from agno_lark.replies.parts import showable, split_answer
from agno_lark.replies.place import Place
from agno_lark.replies.poster import Poster
from agno_lark.replies.reactions import Reactions
from agno_lark.replies.writer import CardMemory, CardWriter

__all__ = [
    "STOP",
    "CardMemory",
    "CardWriter",
    "Ending",
    "FinalPart",
    "Place",
    "Poster",
    "Reactions",
    "final_parts",
    "note_card",
    "running_card",
    "showable",
    "split_answer",
]
