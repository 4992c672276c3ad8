"""A generator of somebody else answers: asked once, and verified as ours are.

job ──► GeneratorTask ──► its function ──► Schedule ──► Job.verified ──► ScheduleAnalysis
                                      └──► a reason ──► a refusal, in its words
"""

from __future__ import annotations

from stretto.generate.outside import GeneratorTask, ask
from stretto.solution import Refusal, ScheduleAnalysis
from stretto.solve.job import Job


def asked(job: Job) -> ScheduleAnalysis:
    """What it found, verified."""
    problem, options, name = job.problem, job.problem.options, job.chosen.generator
    task = GeneratorTask(
        problem.loop,
        problem.machine,
        job.bounds.mii,
        options.max_ii,
        options.max_stages,
        options.fuse,
        job.search_until.left,
    )
    found = ask(name, task)
    limit = options.max_ii or job.bounds.mii
    if isinstance(found, str):
        refusal = Refusal(limit, f"generator `{name}` found none: {found}")
        return job.failure((refusal,))
    if options.max_ii is not None and found.ii > options.max_ii:
        told = f"generator `{name}` has II {found.ii}; the largest II allowed is {limit}"
        return job.failure((Refusal(limit, told),))
    return job.verified(job.chosen, found)
