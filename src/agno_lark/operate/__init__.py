"""What an operator sees and does: where a message is, which jobs there are, ask again, take back.

Enters: an id of any kind (message, job or turn, run). Leaves: facts, never anybody's words. Each function takes a
transaction, so it serves the daemon's status route and the command line, which works on the file from outside.
"""

from agno_lark.operate.decide import cancel_job, retry_job
from agno_lark.operate.whereabouts import JobLine, Whereabouts, list_jobs, whereabouts

__all__ = ["JobLine", "Whereabouts", "cancel_job", "list_jobs", "retry_job", "whereabouts"]
