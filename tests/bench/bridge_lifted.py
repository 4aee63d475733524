"""The daemon with the gates of its app and chats lifted, to see what the code itself can do. The card's gate stays.

    python tests/bench/bridge_lifted.py [the options of agno-lark]

The real daemon has no switch for this: Feishu's rates are not a matter of taste. So the defaults are replaced here.
"""

from agno_lark.cli import main
from agno_lark.feishu.limits import Limits, Rate

NO_LIMIT = Rate(burst=1_000_000, per_s=1_000_000)

if __name__ == "__main__":
    defaults = Limits.__init__.__kwdefaults__
    assert defaults is not None
    defaults.update(chat=NO_LIMIT, api_second=NO_LIMIT, api_minute=NO_LIMIT)
    main()
