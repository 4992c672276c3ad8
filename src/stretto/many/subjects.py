"""What a sweep goes over: something that makes a loop of a configuration, in any process.

    attention.py:make        a function of Python, with the axes as keywords  ──►  Loop or Kernel
    matmul.py:kernel         a @triton.jit function, with the axes as constexprs: needs Triton
    gemm.json, kernel.ttir   an input as every command reads it

A subject is words alone, so that it can be sent anywhere; the file is loaded where it is used.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from stretto.api import misgiven
from stretto.api.kernels import kernel_source
from stretto.api.read_write import chosen, read
from stretto.compile.sources import choice_of
from stretto.errors import DocumentError, StrettoError, listed
from stretto.frontends import Source
from stretto.kernel import Kernel
from stretto.kernel.configuration import Configuration as KernelConfiguration
from stretto.loop import Loop
from stretto.machine import Machine, load_machine
from stretto.machine.choice import ASKED, chosen_for_loop
from stretto.machine.settings import Setting, with_settings
from stretto.many.grids import Configuration, Value


@dataclass(frozen=True, slots=True)
class Made:
    """A loop of a configuration, and the words of its input that are worth knowing."""

    loop: Loop
    machine: Machine
    """With the settings of the configuration."""
    machine_why: str
    notes: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def machine_with(name: str, settings: tuple[tuple[str, Setting], ...]) -> Machine:
    """A machine with other settings."""
    return with_settings(name, dict(settings)) if settings else load_machine(name)


@dataclass(frozen=True)
class Subject:
    """What is swept over, in words."""

    file: str
    name: str = ""
    """Of the function; "": the file is an input."""
    signature: tuple[tuple[str, str], ...] = ()
    """Types of a Triton kernel's parameters that are no constexprs."""
    target: tuple[str, int] = ("cuda", 90)
    """What Triton compiles for."""
    loop: str | None = None
    """The loop that counts, where there are several."""
    given: Callable[..., object] | Loop | Kernel | None = field(default=None, repr=False)
    """What Python has at hand, instead of a file."""

    def __str__(self) -> str:
        return f"{self.file}:{self.name}" if self.name else self.file

    def made(self, configuration: Configuration, machine: str | None) -> Made:
        """The loop of a configuration, lowered for a machine where it is of a kernel."""
        found = self._found(dict(configuration.arguments))
        if isinstance(found, Kernel):
            target, why = self._target(found, configuration, machine)
            asked = KernelConfiguration(configuration.consumers or 1)
            source = kernel_source(found.location.file, (found,), target, asked)
            one, notes = _counting(chosen(source, self.loop))
            return Made(_with_rings(one, configuration), target, why, notes)
        if configuration.consumers is not None:
            raise StrettoError("consumers share the rows of a kernel; this is a loop")
        if isinstance(found, Loop):
            source = Source(str(self), (found,))
        elif isinstance(found, Source):
            source = found
        else:
            named = None if machine is None else machine_with(machine, configuration.settings)
            source = read(self.file, named)
        one, notes = _counting(chosen(source, self.loop))
        name, why = chosen_for_loop(one.machine)
        if machine is not None:
            name, why = machine, ASKED
        target = machine_with(name, configuration.settings)
        return Made(_with_rings(one, configuration), target, one.machine_why or why, notes)

    def launched(
        self, configuration: Configuration, machine: str | None
    ) -> tuple[Kernel, Machine, str]:
        """The kernel of a configuration, its machine, and why; StrettoError where it is a loop."""
        found = self._found(dict(configuration.arguments))
        if not isinstance(found, Kernel):
            raise StrettoError("what is launched is a kernel; this is a loop")
        return found, *self._target(found, configuration, machine)

    @property
    def is_kernel(self) -> bool:
        """Whether it is a kernel, as far as that shows before anything is made."""
        if self.name or self.given is not None:
            return isinstance(self.given, Kernel)
        return _kernel_input(self.file) is not None

    def _target(
        self, kernel: Kernel, configuration: Configuration, machine: str | None
    ) -> tuple[Machine, str]:
        name, why = choice_of(self.file, kernel) if machine is None else (machine, ASKED)
        return machine_with(name, configuration.settings), why

    def _found(self, arguments: Mapping[str, Value]) -> object:
        """What there is to schedule: a loop, a kernel, or None for an input."""
        given = self.given
        if given is None and not self.name:
            given = _kernel_input(self.file)
            if given is None:
                _no_arguments(arguments, self.file)
                return None
        if isinstance(given, Loop | Kernel):
            _no_arguments(arguments, str(self))
            return given
        function = given if given is not None else load_object(self.file, self.name)
        if hasattr(function, "arg_names") and hasattr(function, "params"):
            return self._triton(function, arguments)
        if not callable(function):
            raise StrettoError(f"{self} is {type(function).__name__}; expected a function")
        return self._called(function, arguments)

    def _called(self, function: Callable[..., object], arguments: Mapping[str, Value]) -> object:
        try:
            inspect.signature(function).bind(**arguments)
        except TypeError as error:
            raise StrettoError(f"{self} cannot be called so: {error}") from None
        try:
            with redirect_stdout(sys.stderr):
                found = function(**arguments)
        except StrettoError:
            raise
        except Exception as error:
            first = next(iter(str(error).splitlines()), "")
            raise StrettoError(f"{self} failed: {type(error).__name__}: {first}") from error
        if not isinstance(found, Loop | Kernel | Source):
            raise StrettoError(
                f"{self} returned {type(found).__name__}; expected a Loop or a Kernel"
            )
        return found

    def _triton(self, kernel: Any, arguments: Mapping[str, Value]) -> Kernel:
        from stretto.triton import read as compiled  # noqa: PLC0415 - needs Triton

        known: list[str] = list(kernel.arg_names)
        options: dict[str, Any] = {n: v for n, v in arguments.items() if n not in known}
        if set(options) - {"num_warps", "num_stages"}:
            name = next(name for name in options if name not in ("num_warps", "num_stages"))
            raise StrettoError(f"{self} has no parameter `{name}`; it has {listed(known)}")
        constexprs = {name: v for name, v in arguments.items() if name in known}
        signature = dict(self.signature)
        missing = [name for name in known if name not in signature and name not in constexprs]
        if missing:
            hint = "give its type (--signature NAME=*fp16) or its values (--axis NAME=64,128)"
            raise StrettoError(f"{self} has a parameter `{missing[0]}`; {hint}")
        return compiled(
            kernel, signature=signature, constexprs=constexprs, target=self.target, **options
        )


def _no_arguments(arguments: Mapping[str, Value], what: str) -> None:
    if arguments:
        name = next(iter(arguments))
        hint = "give a function that makes it: --function FILE.py:NAME"
        raise StrettoError(f"{what} leaves no `{name}` open; {hint}")


@lru_cache(maxsize=8)
def _kernel_input(file: str) -> Kernel | None:
    """The kernel of an input, where it is one; read once a process."""
    from stretto.compile.sources import is_kernel, kernels_of  # noqa: PLC0415 - few inputs are
    from stretto.frontends import read_input  # noqa: PLC0415

    called, text = read_input(file)
    if not is_kernel(called, text):
        return None
    kernels = kernels_of(called, text)
    return kernels[0] if len(kernels) == 1 else None


def _counting(source: Source) -> tuple[Loop, tuple[str, ...]]:
    """The loop that counts: the only one, or the one with most operations, which is told."""
    notes = tuple(note.text for note in source.notes)
    if len(source.loops) == 1:
        return source.loops[0], notes
    one = max(source.loops, key=lambda loop: len(loop.ops))
    others = listed(loop.name for loop in source.loops if loop is not one)
    return one, (*notes, f"loop {one.name} counts, with most operations; others: {others}")


def _with_rings(loop: Loop, configuration: Configuration) -> Loop:
    """The loop with caps on its rings; `*` stands for all that rotate."""
    if not configuration.rings:
        return loop
    depths = dict(configuration.rings)
    rotating = [s.name for s in loop.storages if not s.fixed and s.name in _written(loop)]
    for name in depths:
        if name != "*" and name not in rotating:
            raise StrettoError(f"`{name}` is no ring of {loop.name}; it has {listed(rotating)}")
    storages = tuple(
        replace(s, depth=int(depths.get(s.name, depths.get("*", s.depth or 0))) or None)
        if s.name in rotating
        else s
        for s in loop.storages
    )
    return replace(loop, storages=storages)


def _written(loop: Loop) -> set[str]:
    return {name for op in loop.ops for name in op.writes}


# Functions --------------------------------------------------------------------------------


def subject_of(
    given: str | Callable[..., object] | Loop | Kernel,
    signature: Mapping[str, str] | None = None,
    target: tuple[str, int] = ("cuda", 90),
    loop: str | None = None,
) -> Subject:
    """What is meant: an input, FILE.py:NAME, or what Python has at hand."""
    types = tuple((signature or {}).items())
    if isinstance(given, Loop | Kernel):
        return Subject(f"<{given.name}>", "", types, target, loop, given)
    # A @triton.jit function may be launched, and not called.
    if not isinstance(given, str) and not callable(given) and not hasattr(given, "arg_names"):
        raise misgiven("a function, a loop, a kernel or the path of one", given)
    if not isinstance(given, str):
        file, name = _written_at(given)
        if file:
            return Subject(file, name, types, target, loop)
        return Subject("<Python>", name, types, target, loop, given)
    file, colon, name = given.rpartition(":")
    if colon and file.endswith(".py"):
        return Subject(file, name, types, target, loop)
    return Subject(given, "", types, target, loop)


def _written_at(function: Callable[..., object]) -> tuple[str, str]:
    """The file of a function that can be found by its name there; "": it cannot."""
    plain = getattr(function, "fn", function)  # of a @triton.jit
    name = str(getattr(plain, "__qualname__", type(function).__name__))
    try:
        file = inspect.getsourcefile(plain)
    except TypeError:
        file = None
    if file is None or not name.isidentifier() or not Path(file).is_file():
        return "", name
    return file, name


@lru_cache(maxsize=16)
def load_object(file: str, name: str) -> object:
    """What a file of Python calls by a name; it is run once a process."""
    path = Path(file).resolve()
    spec = spec_from_file_location(f"_stretto_sweep_{path.stem}_{abs(hash(path))}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise DocumentError(file, "", "cannot be read as a file of Python")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # its neighbours, as where it is run
    try:
        with redirect_stdout(sys.stderr):  # what a command prints is its own
            spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        hint = " (pip install stretto[gpu])" if (error.name or "").startswith("triton") else ""
        raise DocumentError(file, "", f"{error}{hint}") from error
    except (Exception, SystemExit) as error:
        first = next(iter(str(error).splitlines()), "")
        raise DocumentError(file, "", f"{type(error).__name__}: {first}") from error
    if not hasattr(module, name):
        known = [n for n, value in vars(module).items() if callable(value) and n[0] != "_"]
        raise DocumentError(file, "", f"no `{name}`", f"it has {listed(known)}")
    return getattr(module, name)
