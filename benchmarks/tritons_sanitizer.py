"""Triton's tests of its own sanitizer, judged by their assertions, on `stretto check`'s emulator.

python benchmarks/tritons_sanitizer.py TRITON/python/test/gluon/test_consan.py [PART OF A NAME]

Each test launches a wrong kernel or a right one and asserts that the GPU's sanitizer stopped it or
did not. Here its subprocess is the emulator, which "stopped" where it has findings. Reads of what
nothing has written and races in global memory are set aside: Triton's sanitizer seeks neither.
"""

# What a test file defines has any type.
# pyright: basic

from __future__ import annotations

import inspect
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stretto.sanitizer import checking
from stretto.sanitizer.block import Sources
from stretto.sanitizer.finding import Report
from stretto.sanitizer.launches import Launcher, Settings
from stretto.sanitizer.stand_ins import tensors
from stretto.sanitizer.stand_ins.modules import Knobs, SkippedError, installed

ASIDE = ("never-written", "global-race")
BLOCKS = (1, 2)
"""Of a cluster, where a test takes any."""
SECONDS = 10
"""For a case."""


class Output:
    """What a test reads: any text that it looks for, if there are findings."""

    def __init__(self, wrong: list[Any]) -> None:
        self.wrong = wrong

    def __contains__(self, text: str) -> bool:
        return bool(self.wrong)

    def __eq__(self, other: object) -> bool:
        return not self.wrong and other == ""

    __hash__ = None  # type: ignore[assignment]


def cases(test: Any) -> Iterator[dict[str, Any]]:
    """A test's sets of parameters."""
    axes: list[list[dict[str, Any]]] = []
    for named, values in getattr(test, "parameters", []):
        keys = [k.strip() for k in named.split(",")] if isinstance(named, str) else list(named)
        rows = [v if len(keys) > 1 else (v,) for v in values]
        axes.append([dict(zip(keys, row, strict=True)) for row in rows])
    if "num_ctas" in inspect.signature(test).parameters:
        axes.append([{"num_ctas": n} for n in BLOCKS])
    for case in itertools.product(*axes):
        yield {k: v for part in case for k, v in part.items()}


def judged(test: Any, case: dict[str, Any], launcher: Launcher, space: dict[str, Any]) -> str:
    """What comes of one case; nothing where the test skips it."""
    report, wrapped = launcher.report, False

    def wrong() -> list[Any]:
        return [f for f in report.findings if not f.note and f.rule not in ASIDE]

    def run_in_process(function: Any, given: Any = (), *_: Any, **__: Any) -> Any:
        nonlocal wrapped
        wrapped = True
        function(*given)
        stopped = RuntimeError("device-side assert") if wrong() else None
        return SimpleNamespace(exc=stopped, driver_stderr_output=Output(wrong()))

    space["run_in_process"] = run_in_process
    report.findings.clear()
    report.coverage.left_out.clear()
    launcher.spent.clear()
    launcher.settings.until = time.monotonic() + SECONDS
    known = {"run_wrapper": True, "device": "cuda"}
    others = {n: known.get(n, Knobs()) for n in inspect.signature(test).parameters if n not in case}
    try:
        test(**case, **others)
        verdict = "alarm without cause" if not wrapped and wrong() else "as Triton has it"
    except SkippedError:
        return ""
    except AssertionError:
        verdict = "alarm without cause" if wrong() else "missed"
    except Exception as error:
        return f"the test asks the compiler: {type(error).__name__}"
    if any("clc.try_cancel gives" not in why for why in report.coverage.left_out):
        verdict = "not covered"
    if verdict == "as Triton has it":
        verdict += ": wrong" if wrong() else ": right"
    return verdict


def main(file: str, part: str = "") -> None:
    """All tests, those that skip Hopper as on Blackwell."""
    seen: set[str] = set()
    total: Counter[str] = Counter()
    for capability in (checking.HOPPER, checking.BLACKWELL):
        tensors.CAPABILITY[0] = capability
        report, sources = Report(file), Sources()
        launcher = Launcher(sources, Settings(fenced=True), report)
        with installed(launcher):
            space = checking._load(Path(file).resolve(), sources)
            space.update(is_cuda=lambda: True, is_compile_warmup=lambda: False)
            space.update(is_rubin=lambda: False)
            tests = [t for n, t in space.items() if n.startswith("test_") and part in n]
            for test in tests:
                if getattr(test, "skipped", False) or test.__name__ in seen:
                    continue
                seen.add(test.__name__)
                for case in cases(test):
                    tensors.PARTIAL.clear()
                    verdict = judged(test, case, launcher, space)
                    if verdict:
                        total[verdict.split(":")[0] if "compiler" in verdict else verdict] += 1
                        rules = sorted({f.rule for f in report.findings if not f.note})
                        print(verdict, test.__name__, case, *rules, sep=" | ")
    for verdict, count in total.most_common():
        print(f"{count:4} {verdict}")


if __name__ == "__main__":
    main(*sys.argv[1:])
