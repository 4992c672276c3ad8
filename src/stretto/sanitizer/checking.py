"""A check: the file is run with stand-ins for Triton and torch, its launches under every policy.

kernel.py ── def launches() ──► kernel, grid, arguments
          ── def test_…()   ──► the host code that launches, with its parameters
          ── otherwise      ──► the file as a script
"""

# What a file defines has any type.
# pyright: basic

from __future__ import annotations

import importlib.abc
import importlib.util
import inspect
import itertools
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from stretto.errors import DocumentError
from stretto.files import read_text
from stretto.sanitizer.block import NotCoveredError, Sources
from stretto.sanitizer.finding import Finding, Report, Site
from stretto.sanitizer.launches import EnoughError, Launcher, OutOfTimeError, Settings
from stretto.sanitizer.source import names, prepared
from stretto.sanitizer.stand_ins import tensors
from stretto.sanitizer.stand_ins.dumps import Runtime
from stretto.sanitizer.stand_ins.modules import HostDescriptor, Jit, Knobs, installed
from stretto.sanitizer.stand_ins.tensors import MismatchError, Tensor
from stretto.sanitizer.ttgir import RUNTIME, is_ttgir, translated

HOPPER, BLACKWELL = (9, 0), (10, 0)
"""What host code sees as its GPU."""
CASES = 8
"""Of a test's parameters, at most."""


def check(
    path: str | Path,
    kernel: str = "",
    *,
    against: str | Path | None = None,
    settings: Settings | None = None,
    capability: tuple[int, int] | None = None,
) -> Report:
    """Everything that is wrong with the kernels of a file, as far as its launches show it.

    Without a capability its host code sees Hopper, tests that skip that see Blackwell.
    """
    begun = time.monotonic()
    file = Path(path)
    report = Report(str(path))
    asked = replace(settings or Settings(), kernel=kernel)
    sources = Sources()
    launcher = Launcher(sources, asked, report, chosen=capability is not None)
    try:
        _run(file, against, sources, launcher, capability or HOPPER, frozenset())
        if launcher.skipped and capability is None:
            tests = frozenset(launcher.skipped)
            _run(file, against, sources, launcher, BLACKWELL, tests)
            report.coverage.leave_out(
                f"Hopper: its own mark skips {', '.join(sorted(tests))}, run as on Blackwell"
            )
    except OutOfTimeError:
        report.stopped = True
        report.coverage.leave_out("the time limit ended the check")
    except EnoughError:
        report.coverage.leave_out("what comes after the first launch with something wrong")
    if kernel and kernel not in launcher.checked:
        raise DocumentError(str(path), "", f"no launch of a kernel `{kernel}`")
    if not launcher.count and not report.findings:
        raise DocumentError(
            str(path), "", "nothing in it launches a kernel",
            next((why for why in report.coverage.left_out if "fails" in why), "")
            or next(iter(report.coverage.left_out), "")
            or "define `def launches():` that yields kernel, grid, arguments",
        )  # fmt: skip
    return _finished(report, begun)


def _run(
    file: Path,
    against: str | Path | None,
    sources: Sources,
    launcher: Launcher,
    capability: tuple[int, int],
    tests: frozenset[str],
) -> None:
    """All of a file, or some of its tests, on one GPU."""
    tensors.CAPABILITY[0] = capability
    tensors.PARTIAL.clear()
    tensors._seed(0)
    with installed(launcher):
        dump = _dump(file)
        if dump is not None:
            _run_dump(file, dump, sources, launcher)
            return
        space = _load(file, sources)
        reference = _load(Path(against), Sources()) if against is not None else None
        _drive(space, launcher, reference, tests)


def _finished(report: Report, begun: float) -> Report:
    if not report.coverage.programs or any(
        "the kernel fails here" in w for w in report.coverage.left_out
    ):
        report.stopped = True
    report.seconds = time.monotonic() - begun
    return report


MULTIPLES = (2, 0, 1, 3, 4, 5, 7)
"""Of the unit below: what every number that a dump is launched with is set to, in turn."""
UNIT = 64


def _dump(file: Path) -> str | None:
    """The text of a TTGIR dump; None: it is Python."""
    if file.suffix == ".py":
        return None
    _, text = read_text(str(file))
    if is_ttgir(text):
        return text
    if file.suffix in (".ttgir", ".ttir", ".mlir"):
        raise DocumentError(
            str(file), "", "no kernel of TTGIR in it" if text.strip() else "the file is empty",
            "dump it with TRITON_KERNEL_DUMP=1, or write asm[\"ttgir\"] of a compiled kernel",
        )  # fmt: skip
    return None


def _run_dump(file: Path, text: str, sources: Sources, launcher: Launcher) -> None:
    """A dump, with numbers that lead to several trip counts."""
    kernel = translated(text, str(file))
    name = str(file.resolve())
    sources.shown[name] = str(file)
    sources.lines[name] = text.splitlines()
    space: dict[str, Any] = {**names(), RUNTIME: Runtime()}
    exec(compile(kernel.python, name, "exec", dont_inherit=True), space)
    launcher.coverage.leave_out(
        "a dump does not say what it is launched with: all its numbers are set to one value in "
        "turn, its arrays are made up, one program is run"
    )
    for multiple in MULTIPLES:
        launcher.dump(kernel, space["kernel"], UNIT * multiple)
        if launcher.report.failed():
            return


def _load(file: Path, sources: Sources) -> dict[str, Any]:
    _, text = read_text(str(file))
    code = prepared(text, str(file.resolve()))
    sources.shown[str(file.resolve())] = str(file)
    sources.lines[str(file.resolve())] = text.splitlines()
    name = f"__checked_{file.stem}__"
    module = type(sys)(name)
    module.__dict__.update({**names(), "__file__": str(file.resolve())})
    sys.modules[name] = module
    folder = str(file.resolve().parent)
    finder = _Neighbours(file.resolve().parent, sources)
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, folder)
    from_location = importlib.util.spec_from_file_location
    importlib.util.spec_from_file_location = finder.spec_of
    try:
        exec(code, module.__dict__)
    except (NotCoveredError, OutOfTimeError, EnoughError):
        raise
    except SystemExit:
        pass
    except Exception as error:
        line = _line(error, str(file.resolve()))
        told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise DocumentError(f"{file}:{line}:1", "", told) from error
    finally:
        sys.path.remove(folder)
        sys.meta_path.remove(finder)
        importlib.util.spec_from_file_location = from_location
        for loaded in (name, *finder.loaded):
            sys.modules.pop(loaded, None)
    return module.__dict__


class _Neighbours:
    """Files beside the checked one are made ready as it is, where they hold kernels."""

    def __init__(self, folder: Path, sources: Sources) -> None:
        self.folder, self.sources = folder, sources
        self.loaded: list[str] = []
        self._from_location = importlib.util.spec_from_file_location

    def spec_of(self, name: str, location: Any = None, **more: Any) -> Any:
        """Of a file that host code loads by its place."""
        file = Path(location) if location is not None else Path()
        if not more and file.suffix == ".py" and file.parent.resolve() == self.folder:
            more = {"loader": _Loader(self, file)}
            self.loaded.append(name)
        return self._from_location(name, location, **more)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """A file of that name, beside."""
        del path, target
        file = self.folder / f"{fullname}.py"
        if "." in fullname or not file.is_file():
            return None
        self.loaded.append(fullname)
        return self._from_location(fullname, file, loader=_Loader(self, file))


class _Loader(importlib.abc.Loader):
    """Runs a neighbour."""

    def __init__(self, finder: _Neighbours, file: Path) -> None:
        self.finder, self.file = finder, file

    def create_module(self, spec: Any) -> None:
        """As usual."""
        del spec

    def exec_module(self, module: Any) -> None:
        """Made ready."""
        _, text = read_text(str(self.file))
        name = str(self.file)
        self.finder.sources.shown[name] = name
        self.finder.sources.lines[name] = text.splitlines()
        module.__dict__.update(names())
        sys.modules.pop(module.__name__, None)
        exec(prepared(text, name), module.__dict__)
        sys.modules[module.__name__] = module


def _line(error: BaseException, file: str) -> int:
    trace, line = error.__traceback__, 1
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _drive(space: dict[str, Any], launcher: Launcher, reference: Any, only: frozenset[str]) -> None:
    if callable(space.get("launches")):
        _from_launches(space["launches"], launcher, reference)
        return
    tests = [v for n, v in space.items() if n.startswith("test_") and inspect.isfunction(v)]
    if tests:
        for test in tests:
            if not only or test.__name__ in only:
                _from_test(test, launcher, bool(only))
        return
    if callable(space.get("main")) and not launcher.count:
        _call("main", space["main"], {}, launcher)


def _from_launches(launches: Any, launcher: Launcher, reference: Any) -> None:
    """What the file's `launches` yields, for each class of trip counts where it asks for one."""
    if "trips" not in inspect.signature(launches).parameters:
        for one in launches():
            _launch(one, launcher, reference)
        return
    done: set[int] = set()
    wanted = [2, 0, 1, 3]
    while wanted:
        trips = wanted.pop(0)
        if trips in done:
            continue
        done.add(trips)
        launcher.label = f"{trips} trips"
        for one in launches(trips=trips):
            _launch(one, launcher, reference)
        for depth in sorted(d for d in launcher.coverage.depths if d <= 16):
            near = (depth - 1, depth, depth + 1, 2 * depth + 1)
            wanted += [n for n in near if n not in done and n not in wanted]


def _launch(one: Any, launcher: Launcher, reference: Any) -> None:
    if isinstance(one, dict):
        kernel, grid = one["kernel"], one.get("grid", (1,))
        given, named = one.get("args", ()), one.get("kwargs", {})
    else:
        kernel, grid, given, *rest = one
        named = rest[0] if rest else {}
    if isinstance(given, dict):
        given, named = (), {**given, **named}
    if not isinstance(kernel, Jit):
        raise DocumentError(
            launcher.report.file, "", "`launches` yields something that is no kernel of gluon.jit"
        )
    arrays = {n: v for n, v in _named(kernel, given, named).items() if _array(v) is not None}
    wanted = None
    if reference is not None:
        function = reference.get(kernel.__name__) or reference.get("reference")
        if function is None:
            raise DocumentError(
                launcher.report.file, "",
                f"the reference has neither `{kernel.__name__}` nor `reference`",
            )  # fmt: skip
        wanted = _referred(function, kernel, given, named)
    tensors.PARTIAL.clear()
    before = launcher.settings.programs
    if wanted is not None:
        launcher.settings.programs = 0
    found = len(launcher.report.findings)
    launcher(kernel, grid, tuple(given), dict(named))
    launcher.settings.programs = before
    if wanted is None or tensors.PARTIAL or len(launcher.report.findings) > found:
        return
    for name, want in wanted.items():
        if name in arrays:
            _compare(launcher, kernel, name, _array(arrays[name]), want)


def _named(kernel: Jit, given: Any, named: Any) -> dict[str, Any]:
    return {**dict(zip(kernel.arg_names, given, strict=False)), **named}


def _array(value: Any) -> Any:
    if isinstance(value, HostDescriptor):
        value = value.base
    if isinstance(value, Tensor):
        return value.numbers()
    return value if isinstance(value, np.ndarray) else None


def _referred(function: Any, kernel: Jit, given: Any, named: Any) -> dict[str, Any]:
    """What the reference makes of copies: what it returns by name, or has written."""
    values = {}
    for name, value in _named(kernel, given, named).items():
        array = _array(value)
        values[name] = value if array is None else np.array(array)
    taken = inspect.signature(function).parameters
    found = function(**{n: v for n, v in values.items() if n in taken})
    if isinstance(found, dict):
        return found
    return {n: v for n, v in values.items() if isinstance(v, np.ndarray) and n in taken}


def _compare(launcher: Launcher, kernel: Jit, name: str, got: Any, want: Any) -> None:
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64).reshape(got.shape)
    scale = max(1.0, float(np.max(np.abs(b))) if b.size else 1.0)
    wrong = ~np.isclose(a, b, atol=2e-2 * scale, rtol=2e-2, equal_nan=True)
    if not wrong.any():
        return
    at = tuple(int(n) for n in np.argwhere(wrong)[0])
    site = Site(launcher.report.file, kernel.fn.__code__.co_firstlineno, 1)
    launcher.report.add(
        Finding(
            "different-result",
            site,
            f"`{name}` differs from the reference in {int(wrong.sum())} of {wrong.size} elements, "
            f"first at {list(at)}: {a[at]:g} instead of {b[at]:g}",
            slot=name,
            launch=launcher.coverage.launches[-1],
        )
    )


def _from_test(test: Any, launcher: Launcher, again: bool) -> None:
    if getattr(test, "skipped", False):
        if again:
            launcher.coverage.leave_out(f"{test.__name__}: its own mark skips both GPUs")
        else:
            launcher.skipped.append(test.__name__)
            if launcher.chosen:
                launcher.coverage.leave_out(f"{test.__name__}: skipped by its own mark")
        return
    axes = []
    for named, values in getattr(test, "parameters", []):
        keys = [n.strip() for n in named.split(",")] if isinstance(named, str) else list(named)
        axes.append([dict(zip(keys, v if len(keys) > 1 else (v,), strict=True)) for v in values])
    cases = [{k: v for part in c for k, v in part.items()} for c in itertools.product(*axes)]
    step = max(1, -(-len(cases) // CASES))
    picked = cases[::step]
    if len(picked) < len(cases):
        told = f"{test.__name__}: {len(picked)} of {len(cases)} sets of parameters"
        launcher.coverage.leave_out(told)
    for case in picked:
        _call(test.__name__, test, case, launcher)


def _call(name: str, function: Any, case: dict[str, Any], launcher: Launcher) -> None:
    tensors.PARTIAL.clear()
    told = ", ".join(f"{k}={v}" for k, v in case.items() if isinstance(v, int | str | float))
    launcher.label = f"{name}({told[:120]})"
    found = len(launcher.report.findings)
    with suppress(SystemExit):
        try:
            taken = inspect.signature(function).parameters.values()
            fixtures = [p.name for p in taken if p.name not in case and p.default is p.empty]
            function(**case, **{name: Knobs() for name in fixtures})
        except (OutOfTimeError, EnoughError):
            raise
        except NotCoveredError as error:
            launcher.coverage.leave_out(f"{launcher.label}: {error.what}")
        except MismatchError as error:
            if len(launcher.report.findings) == found:
                site = Site(launcher.report.file, function.__code__.co_firstlineno, 1)
                launcher.report.add(
                    Finding("different-result", site, str(error), launch=launcher.label)
                )
        except Exception as error:
            if type(error).__name__ == "SkippedError":
                launcher.coverage.leave_out(f"{launcher.label}: skipped")
            elif len(launcher.report.findings) == found:
                told = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                launcher.coverage.leave_out(f"{launcher.label}: its host code fails here: {told}")
