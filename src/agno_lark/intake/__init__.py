"""What may enter, what is new, and what becomes which job.

Enters: an `Event` from the connection. Leaves: one committed transaction with the event's dedup keys and its job, and
the answer to a click. Survives a crash: all of it, or nothing: an event that was not committed is not acknowledged, and
Feishu brings it again.
"""

from agno_lark.intake.intake import Intake
from agno_lark.intake.policy import Admission, admit_message, may_decide

__all__ = ["Admission", "Intake", "admit_message", "may_decide"]
