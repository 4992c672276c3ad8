"""A report as text, as JSON and as SARIF, for people, programs and code review.

gemm.py:38:9: error: `a_ring[0]` is read before … [read-too-early]
  first    load, TMA copy, turn 0 at gemm.py:26:9
  barrier  `full[0]`: the copy at line 26 completes it
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stretto.sanitizer.finding import RULES, SCHEMA, Coverage, Finding, Report, Site

if TYPE_CHECKING:
    from stretto.schemas.check import CheckDocument

MOST = 40
"""Lines of what was not covered that text shows."""


def shown(report: Report, strict: bool) -> list[Finding]:
    """What is told: notes only where they count; by place."""
    told = [f for f in report.findings if strict or not f.note]
    return sorted(told, key=lambda f: (f.site.file, f.site.line, f.site.column, f.rule))


def to_lines(report: Report, strict: bool = False, verbose: bool = False) -> list[str]:
    """For people."""
    lines: list[str] = []
    findings = shown(report, strict)
    for finding in findings:
        lines += [*_finding(finding), ""]
    coverage = report.coverage
    counts = f"{len(coverage.launches)} launches, {coverage.programs} program runs"
    seeds = ", ".join(map(str, coverage.seeds))
    verdict = f"{len(findings)} finding{'s' if len(findings) != 1 else ''}"
    lines.append(f"{report.file}: {verdict if findings else 'nothing wrong'} in {counts}")
    lines.append(f"seeds {seeds or 'none'}: {len(coverage.seeds)} orders of copies and partitions")
    lines += [f"loop at {loop}" for loop in _loops(coverage)]
    notes = sum(f.note for f in report.findings)
    if notes and not strict:
        lines.append(f"{notes} note{'s' if notes > 1 else ''} of proxy fences: --strict tells them")
    left = coverage.left_out
    lines += [f"not covered: {why}" for why in (left if verbose else left[:MOST])]
    if len(left) > MOST and not verbose:
        lines.append(f"not covered: {len(left) - MOST} more (-v tells them)")
    return lines


def _loops(coverage: Coverage) -> list[str]:
    """Of each loop: which trip counts were seen, and which that matter were not."""
    told: list[str] = []
    for loop in coverage.loops.values():
        seen = ", ".join(str(n) for n in sorted(loop.counts)[:12])
        classes = {0, 1, 2}
        for depth in coverage.depths:
            classes |= {depth - 1, depth, depth + 1}
        absent = sorted(classes - loop.counts)
        missing = f"; not run: {', '.join(map(str, absent[:8]))}" if absent else ""
        told.append(f"{loop.site}: trip counts {seen}{missing}")
    return told


def _finding(finding: Finding) -> list[str]:
    lines = [f"{finding.site}: error: {finding.message} [{finding.rule}]"]
    for name, access in (("first", finding.first), ("second", finding.second)):
        if access is not None:
            lines.append(f"  {name:8} {access.told()} at {access.site}")
    if finding.barrier:
        lines.append(f"  {'barrier':8} {finding.barrier}")
    lines += [f"  {'':8} {line}" for line in finding.details]
    if finding.site.callers:
        lines.append(f"  {'called':8} from line {', '.join(map(str, finding.site.callers))}")
    if finding.launch:
        lines.append(f"  {'launch':8} {finding.launch}, seed {finding.seed}")
    hint = RULES[finding.rule].hint
    if hint:
        lines.append(f"  {'hint':8} {hint}")
    return lines


def to_json(report: Report, strict: bool = False) -> CheckDocument:
    """For programs: `stretto.check/1`."""
    coverage = report.coverage
    return {
        "schema": SCHEMA,
        "success": not report.failed(strict),
        "file": report.file,
        "findings": [f.to_json() for f in shown(report, strict=True)],
        "coverage": {
            "launches": coverage.launches,
            "seeds": coverage.seeds,
            "programs": coverage.programs,
            "loops": [
                {
                    "file": loop.site.file,
                    "line": loop.site.line,
                    "column": loop.site.column,
                    "trips": sorted(loop.counts),
                }
                for loop in coverage.loops.values()
            ],
            "depths": sorted(coverage.depths),
            "left_out": coverage.left_out,
        },
        "stopped": report.stopped,
        "seconds": report.seconds,
    }


def to_sarif(report: Report, version: str, strict: bool = False) -> str:
    """SARIF 2.1.0, for code review."""
    findings = shown(report, strict)
    used = sorted({f.rule for f in findings})
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "stretto check",
                        "version": version,
                        "rules": [
                            {
                                "id": name,
                                "shortDescription": {"text": RULES[name].title},
                                "help": {"text": RULES[name].hint or RULES[name].title},
                            }
                            for name in used
                        ],
                    }
                },
                "results": [_result(f, used) for f in findings],
            }
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _result(finding: Finding, rules: list[str]) -> dict[str, Any]:
    related = [
        {"id": number, **_location(access.site), "message": {"text": access.told()}}
        for number, access in enumerate((finding.first, finding.second))
        if access is not None
    ]
    told = finding.message + (f"; {finding.barrier}" if finding.barrier else "")
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": "note" if finding.note else "error",
        "message": {"text": told},
        "locations": [_location(finding.site)],
        "relatedLocations": related,
    }


def _location(site: Site) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": site.file},
            "region": {"startLine": max(1, site.line), "startColumn": max(1, site.column)},
        }
    }
