"""Agents by rule beside agents that are chosen: II, what is proved, and CPU seconds.

    python benchmarks/joint/run.py [-o results.json]

By rule one warpgroup does all arithmetic. Each answer goes through check.py, and all are written to
answers/ so that others can check them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from check import check

import stretto

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GRAPHS = ("attention_forward", "attention_backward", "gemm")
MACHINE = "b200"


def _placed(found: stretto.AssignResult) -> list[tuple[int, Any]]:
    """Starts with their operations."""
    return [(found.schedule.starts[op.name], op) for op in found.problem.loop.ops]


def main() -> None:
    """Every graph."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results.json")
    output: Path = parser.parse_args().output
    rows: list[dict[str, Any]] = []
    for name in GRAPHS:
        (loop,) = stretto.read(ROOT / "examples" / f"{name}.mlir")
        ruled = stretto.schedule(loop, MACHINE, prove=True, objective="ii")
        began = time.process_time()
        found = stretto.assign(loop, MACHINE)
        seconds = time.process_time() - began
        document = found.to_document()
        (entry,) = document["loops"]
        wrong = check(entry)
        if wrong:
            raise SystemExit(f"{name}: {wrong}")
        entry["seconds"] = 0.0
        whole = entry["schedule"]
        entry["schedule"] = {
            "ii": whole["ii"],
            "ops": [{key: op[key] for key in ("name", "start", "stage")} for op in whole["ops"]],
            "storages": [
                {key: row[key] for key in ("name", "ring_depth")} for row in whole["storages"]
            ],
        }
        (HERE / "answers").mkdir(exist_ok=True)
        text = json.dumps(document, separators=(",", ":"))
        (HERE / "answers" / f"{name}.json").write_text(text + "\n")
        rows.append(
            {
                "graph": name,
                "machine": MACHINE,
                "by_rule": {
                    "ii": ruled.ii,
                    "optimal": ruled.proof is not None and ruled.proof.optimal,
                },
                "chosen": {
                    "ii": found.ii,
                    "lower": found.lower,
                    "optimal": found.optimal,
                    "groups": max(1, len(set(found.agents.values()))),
                    "handed": [f"{row['tile']}: {row['bytes']} bytes" for row in entry["handed"]],
                    "agents": {row["name"]: row["ops"] for row in entry["groups"]},
                    "length": max(start + op.completion for start, op in _placed(found)),
                    "cpu_seconds": round(seconds, 2),
                },
            }
        )
        print(json.dumps(rows[-1]))
    output.write_text(json.dumps({"version": stretto.__version__, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
