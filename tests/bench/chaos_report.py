"""What a chaos run came to: as JSON, as text, and as a folder for whoever looks into it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agno_lark.testing import FeishuSandbox
from tests.bench.chaos_judge import FAULTS, Facts, Verdict
from tests.bench.chaos_processes import Kept
from tests.bench.chaos_saboteur import Saboteur
from tests.bench.contest import describe_machine
from tests.bench.measures import spread_ms

__all__ = ["keep", "summary", "table"]

RATES = "Feishu's own (50/s and 1000/min an API, 5 sends/s a chat, 10 operations/s a card)"
SHOWN_CASES = 20


def summary(
    facts: Facts, verdict: Verdict, *, feishu: FeishuSandbox, bridge: Kept, agentos: Kept, saboteur: Saboteur
) -> dict[str, Any]:
    """The part of the report that is seen at the end. `turn_ms`: from acceptance to the end of the turn."""
    turns_s = [(turn.finished_ms - turn.accepted_ms) / 1000 for turn in facts.turns if turn.finished_ms]
    return {
        "machine": describe_machine(),
        "messages": len(facts.asked),
        "verdict": verdict.as_json(),
        "deeds": dict(saboteur.done.most_common()),
        "lives": {"bridge": bridge.lives, "agentos": agentos.lives},
        "start_ms": {"bridge": spread_ms(bridge.starts_s), "agentos": spread_ms(agentos.starts_s)},
        "turn_ms": spread_ms(turns_s),
        "model_calls": len(facts.calls),
        "deliveries": dict(feishu.deliveries.counts),
        "refusals": {name: count for name, count in sorted(feishu.world.counts.items()) if "!" in name},
        "rates": RATES,
    }


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    verdict, lives = report["verdict"], report["lives"]
    size = f"{report['messages']} messages of {report['people']} people in {report['minutes']:g} min"
    lines = [
        f"seed {report['seed']}: {size} ({report['messages_per_s']}/s); drained in {report['drained_s']} s",
        f"lives: bridge {lives['bridge']}, AgentOS {lives['agentos']}; deeds: {report['deeds']}",
        "",
        *(f"{verdict[name]:>6}  {name}: {told}" for name, told in FAULTS.items()),
        f"{verdict['unknown']:>6}  without an answer of the agent's, each explained: {verdict['explained']}",
        "",
        f"answers: {verdict['answers']}; model calls: {report['model_calls']}; Stop pressed: {report['stops_pressed']}",
        f"turn: {report['turn_ms']} ms; deliveries: {report['deliveries']}",
        f"rates: {report['rates']}",
    ]
    for name, cases in verdict["wrongs"].items():
        lines += ["", f"{name}:", *(f"  {case}" for case in cases[:SHOWN_CASES])]
    return "\n".join(lines) + "\n"


def keep(folder: Path, report: dict[str, Any], saboteur: Saboteur, facts: Facts) -> None:
    """Beside logs and databases: the report, the deeds, and everything asked, seen and turned, a JSON line each."""
    (folder / "report.json").write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    entries = {
        "deeds": saboteur.log,
        "downs": [asdict(down) for down in facts.downs],
        "asked": [asdict(asked) for asked in facts.asked],
        "seen": [asdict(seen) for seen in facts.seen],
        "turns": [asdict(turn) for turn in facts.turns],
    }
    for name, found in entries.items():
        lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in found]
        (folder / f"{name}.jsonl").write_text("".join(lines))
