"""How fast are turns? `python tests/bench/turns.py [--json]`: the bridge beside the SDK's own channel, same work.

For 1, 10 and 100 chats at once, against an AgentOS that answers at once, under Feishu's rates and with those of app and
chat lifted; with 100 people who think before they write; and with long streamed answers, to see that no card is written
too often. What each column means stands below the table. The JSON is a contract: keys are added, never renamed.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.contest import LIFTED, STRICT, SYSTEMS, Rules, describe_machine, one_round
from tests.bench.load import Load
from tests.bench.measures import best_of
from tests.bench.report import AGENTOS_KINDS, HOW, aims, table

MESSAGES = {1: 20, 10: 10, 100: 3}
PACED = Load(chats=100, messages=2, pause_s=8.0)  # about ten messages a second: busy, but within Feishu's rates
STREAMS = Load(chats=10, messages=1, word="stream")


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="turns.py", description="Turns a second, and where their time goes.")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, nothing else")
    parser.add_argument("--chats", default="1,10,100", help="how many at once, comma-separated (%(default)s)")
    parser.add_argument("--messages", type=int, default=0, help="messages a chat; 0: 20, 10 and 3")
    parser.add_argument("--rules", default="feishu,lifted", help="feishu, lifted or both (%(default)s)")
    parser.add_argument("--systems", default="bridge,sdk", help="bridge, sdk or both (%(default)s)")
    parser.add_argument("--agentos", choices=list(AGENTOS_KINDS), default="stub", help="who answers (%(default)s)")
    parser.add_argument("--repeat", type=int, default=1, help="rounds; the least disturbed of each row is shown")
    parser.add_argument("--no-paced", action="store_true", help="leave the load of 100 people who think out")
    parser.add_argument("--no-streams", action="store_true", help="leave the load of long streamed answers out")
    return parser.parse_args(argv)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that was asked for, as the JSON says it."""
    loads = [Load(chats=n, messages=options.messages or MESSAGES.get(n, 3)) for n in map(int, options.chats.split(","))]
    report: dict[str, Any] = {"machine": describe_machine(), "agentos": options.agentos, "how": HOW, "rules": {}}
    rows: list[dict[str, Any]] = []
    for rules in (STRICT, LIFTED):
        if rules.name not in options.rules.split(","):
            continue
        report["rules"][rules.name] = rules.told
        for system in SYSTEMS:
            if system in options.systems.split(","):
                paced = [PACED] if rules is STRICT and not options.no_paced else []
                rows += await _best(rules, system, [*loads, *paced], options)
    report["rows"] = rows
    if not options.no_streams and options.agentos == "stub" and "bridge" in options.systems:
        report["streams"] = (await one_round(STRICT, "bridge", [STREAMS], agentos_kind="stub"))[0]
    report["aims"] = aims(report)
    return report


async def _best(rules: Rules, system: str, loads: Sequence[Load], options: argparse.Namespace) -> list[dict[str, Any]]:
    rounds = []
    for number in range(1, options.repeat + 1):
        _say(f"{rules.name} rates, {system}, round {number} of {options.repeat} …")
        rounds.append(await one_round(rules, system, loads, agentos_kind=options.agentos))
    return [{**best_of(same), "rounds": len(same)} for same in zip(*rounds, strict=True)]


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """0 when nothing was wrong with the answers; the aims are told, not enforced (they depend on the machine)."""
    options = arguments(argv)
    report = asyncio.run(measure(options))
    sys.stdout.write(json.dumps(report, indent=2) + "\n" if options.json else table(report))
    rows = [*report["rows"], *([report["streams"]] if "streams" in report else [])]
    return int(any(row["wrong_answers"] or row["unanswered"] for row in rows if row["system"] == "bridge"))


if __name__ == "__main__":
    sys.exit(main())
