"""Which of many configurations a kernel is launched in: the first of a ranking, or the best of K.

configs × consumers × depths ──► ranked by the model ──► "model": the first
                                                    └──► "measure:3": the fastest of three launched
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from stretto.api.predicting import DEPTHS, Given, KernelRanking, rank
from stretto.caching import UntrustedError, cache_folder, make_own, read_own, tell, write_own
from stretto.compile.given import multiplies
from stretto.document import Cursor, nullable, parse_json
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.kernel.configuration import DEFAULT, Blocks
from stretto.launching.asked import Asked
from stretto.launching.compiling import can_compile, compile_emitted
from stretto.launching.reporting import report_tuned
from stretto.limits import FILE_BYTES
from stretto.machine import Machine

SCHEMA = "stretto.tuned/1"
TUNED = "tuned"
"""Where choices are remembered, in the cache."""
HINT = 'give tune="model" to take the first, or tune="measure:5" to measure the first 5'

SETTLED = 4
"""Of the first, from which `model` takes one: so many are emitted as they would be launched."""
KINDS: tuple[Blocks, ...] = ("given", "persistent")
"""Kinds of blocks that are ranked."""
OPTIONS = ("num_warps", "num_stages")
"""Of a launch, not of the kernel; configurations may give them as well."""

Config = Mapping[str, Any]
Configs = Sequence[Config] | Mapping[str, Sequence[Any]]
"""Values of open constexprs: one mapping each, or lists of which all combinations are meant."""


def measured_of(tune: str) -> int:
    """How many configurations are measured: 0 for `model`, K for `measure:K`."""
    if tune == "model":
        return 0
    found = re.fullmatch(r"measure:(\d+)", tune) if isinstance(tune, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if found is None or int(found[1]) < 1:
        raise StrettoError(f"tune={tune!r} is not known; {HINT}")
    return int(found[1])


def configurations(configs: Configs, names: Sequence[str]) -> tuple[Config, ...]:
    """One by one, as many as there are; StrettoError where one is not of this kernel."""
    if isinstance(configs, Mapping):
        lists = {k: [v] if isinstance(v, str | int | float) else v for k, v in configs.items()}
        found = [dict(zip(lists, some, strict=True)) for some in itertools.product(*lists.values())]
    else:
        found = [dict(one) for one in configs]
    if not found:
        hint = "give a list of mappings, or a mapping of lists, or leave configs out"
        raise StrettoError(f"configs has no configuration; {hint}")
    for one in found:
        unknown = [name for name in one if name not in names and name not in OPTIONS]
        if unknown:
            told = f"configs gives `{unknown[0]}`, which is no parameter of the kernel"
            raise StrettoError(f"{told}; it has {', '.join((*names, *OPTIONS))}")
        if set(one) != set(found[0]):
            odd = sorted(set(one) ^ set(found[0]))[0]
            raise StrettoError(f"configs gives `{odd}` in some configurations and not in others")
    return tuple(found)


def called(config: Config) -> str:
    """A configuration as rankings show it."""
    return " ".join(f"{name}={value}" for name, value in config.items()) or "as launched"


@dataclass(frozen=True)
class Choice:
    """A configuration, by its number, with what the schedules are asked for."""

    config: int
    consumers: int
    depth: int | None
    blocks: Blocks = DEFAULT.blocks


def ranked(
    configs: Sequence[Config],
    read: Callable[[int], tuple[Kernel, Sequence[int]]],
    asked: Asked,
    given: Given,
    keep: int | None,
    *,
    settle: int = 0,
) -> KernelRanking:
    """Configurations by what the model says; `read` gives a configuration's kernel and grid.
    `settle` of them are emitted as a launch has them, where Triton is at hand.

    What cannot be read is refused with its reason; StrettoError where nothing is left. Of several
    that are emitted alike the first stands for all.
    """
    problems: list[tuple[Kernel, Sequence[int]]] = []
    names: list[str] = []
    refused: list[str] = []
    alike: dict[object, bool] = {}
    for number, config in enumerate(configs):
        tiles = repr(sorted((n, repr(v)) for n, v in config.items() if n not in OPTIONS))
        warps = config.get("num_warps")
        if alike.get(tiles, False) or (tiles, warps) in alike:
            continue
        try:
            problems.append(read(number))
        except Exception as error:  # Triton's own, of any kind
            said = " ".join(str(error).split()) or type(error).__name__
            refused.append(f"{called(config)}: {said}")
        else:
            names.append(called(config))
            # Agents have warps of their own; only where there are none does the launch say.
            alike[tiles] = asked.mode != "unspecialized" and multiplies(problems[-1][0])
            alike[tiles, warps] = True
    if problems:
        known = {parameter.name for kernel, _ in problems for parameter in kernel.parameters}
        try:
            found = rank(
                problems,
                asked.machine,
                arguments={name: value for name, value in given.items() if name in known},
                mode=asked.mode,
                consumers=None if asked.consumers is None else (asked.consumers,),
                depths=DEPTHS if asked.depth is None else (asked.depth,),
                blocks=KINDS if asked.blocks is None else (asked.blocks,),
                crowded=True,
                names=names,
                keep=keep,
                assemble=compile_emitted if can_compile() else None,
                settle=settle,
            )
        except StrettoError as error:
            refused.append(str(error))
        else:
            return replace(found, refused=(*refused, *found.refused))
    more = f" (and {len(refused) - 1} more reasons)" if len(refused) > 1 else ""
    raise StrettoError(f"no configuration can be emitted: {refused[0]}{more}")


def choose(
    name: str,
    key: str,
    measured: int,
    rank_first: Callable[[int], KernelRanking],
    configs: Sequence[Config],
    measure: Callable[[Choice], float],
) -> Choice:
    """The choice of a key: remembered, or found now and remembered."""
    file = f"{key}.json"
    known = _remembered(file, len(configs))
    if known is not None:
        return known
    ranking = rank_first(max(1, measured))
    numbers = {called(config): number for number, config in enumerate(configs)}
    choices = [
        Choice(numbers[one.name], one.made.consumers, one.depth, one.blocks)
        for one in ranking.found
    ]
    times: list[float | None] = [None] * len(choices)
    failed: list[str] = []
    if measured:
        for number, choice in enumerate(choices):
            try:
                times[number] = measure(choice)
            except Exception as error:  # of Triton or of the GPU: another may do
                failed.append(f"{called(configs[choice.config])}: {error}")
        if all(time is None for time in times):
            raise StrettoError(f"none of the first {len(choices)} could be measured: {failed[0]}")
        best = min((time, n) for n, time in enumerate(times) if time is not None)[1]
    else:
        best = 0
    found = choices[best]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kernel": name,
        "chosen": {
            "config": found.config,
            "consumers": found.consumers,
            "depth": found.depth,
            "blocks": found.blocks,
        },
        "measured_ms": times,
        "failed": failed,
        "ranking": ranking.to_json(),
    }
    report_tuned(name, key, "\n".join(ranking.to_text()) + "\n", document)
    with suppress(OSError):  # what cannot be remembered is found again
        folder = make_own(cache_folder(), TUNED)
        write_own(folder / file, (json.dumps(document, indent=2) + "\n").encode())
    return found


def _remembered(file: str, count: int) -> Choice | None:
    try:
        data = read_own(cache_folder(), TUNED, file, limit=FILE_BYTES)
        chosen = parse_json(file, data.decode()).get("chosen")
        config, consumers = chosen.get("config").natural(), chosen.get("consumers").positive()
        depth = chosen.opt("depth", nullable(Cursor.positive), None)
        blocks = cast("Blocks", chosen.get("blocks").choice(get_args(Blocks)))
    except UntrustedError as error:
        tell(error)
        return None
    except (OSError, ValueError, StrettoError):
        return None
    return Choice(config, consumers, depth, blocks) if config < count else None


def resolved(asked: Asked, choice: Choice) -> Asked:
    """What is asked for once a choice is made."""
    assert isinstance(asked.machine, Machine), "Asked.on gives it"
    specialized = asked.mode != "unspecialized"
    consumers = choice.consumers if specialized else asked.consumers
    return replace(asked, consumers=consumers, depth=choice.depth, blocks=choice.blocks)
