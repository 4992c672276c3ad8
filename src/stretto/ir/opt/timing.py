"""Where the time went, for `--mlir-timing`.

----Wall Time----  ----Name----
  0.0120 ( 61.2%)  Parser
  0.0051 ( 26.0%)  tileas-generate-schedule
  0.0025 ( 12.8%)  Rest
  0.0196 (100.0%)  Total
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

PARSER, VERIFIER, OUTPUT = "Parser", "Verifier", "Output"
_RULE = "===" + "-" * 73 + "==="


@dataclass
class Timer:
    """Seconds by name, in the order of first mention; parts of a pipeline by place, too."""

    began: float = field(default_factory=perf_counter)
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def measure(self, name: str) -> Generator[None]:
        """Add the time of a block to a name; also where the block fails."""
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - start

    def report(self) -> str:
        """The table, as of now."""
        total = perf_counter() - self.began
        rows = [*self.seconds.items(), ("Rest", max(0.0, total - sum(self.seconds.values())))]
        lines = [_RULE, "... Execution time report ...".center(len(_RULE)).rstrip(), _RULE]
        lines += [f"  Total Execution Time: {total:.4f} seconds", ""]
        lines.append("  ----Wall Time----  ----Name----")
        for name, seconds in (*rows, ("Total", total)):
            share = 100 * seconds / total if total else 100.0
            lines.append(f"  {seconds:8.4f} ({share:5.1f}%)  {name}")
        return "\n".join(lines) + "\n"
