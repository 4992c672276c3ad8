"""Generators as somebody else might write them, knowing only what `stretto` says in public."""

from __future__ import annotations

from stretto import GeneratorTask, Schedule


def one_by_one(task: GeneratorTask) -> Schedule | str:
    """Each operation after the one before it is wholly done; the next iteration after the last."""
    starts: dict[str, int] = {}
    at = 0
    for op in task.loop.ops:
        starts[op.name] = at
        at += max(1, op.completion)
    return Schedule(max(at, task.mii), starts)


def all_at_once(task: GeneratorTask) -> Schedule | str:
    """Every operation at cycle 0, which no loop with a dependence allows."""
    return Schedule(task.mii, {op.name: 0 for op in task.loop.ops})


def breaks(task: GeneratorTask) -> Schedule | str:
    """Fails as programs do."""
    raise ZeroDivisionError(f"no idea what to do with {len(task.loop.ops)} operations\nnone at all")


def gives_up(task: GeneratorTask) -> Schedule | str:
    """Says why."""
    return f"{task.loop.name} is not to its taste"
