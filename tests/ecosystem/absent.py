"""Modules that are not installed, stood in for: enough that a file of kernels can be imported.

    import torch                     ──► a module whose attributes are all there
    class F(torch.autograd.Function) ──► a class
    @torch.compile(dynamic=True)     ──► leaves what it decorates as it is
    torch.__version__ >= "2.4"       ──► true

Nothing of a stand-in computes; kernels do not need it, only the host code beside them.
"""

import importlib.machinery
import sys
from types import ModuleType


class _Meta(type):
    def __getattr__(cls, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return "cuda" if name == "type" else _made(name)  # of a device

    def __iter__(cls):
        return iter(())

    def __len__(cls):
        return 0

    def __lt__(cls, _):
        return False

    def __gt__(cls, _):
        return True

    __ge__, __le__, __or__, __ror__ = __gt__, __lt__, lambda cls, _: cls, lambda cls, _: cls
    __getitem__ = __add__ = __sub__ = __mul__ = __floordiv__ = __truediv__ = lambda cls, _: cls
    __rmul__ = __radd__ = __rsub__ = __and__ = __xor__ = __matmul__ = __getitem__

    def __enter__(cls):
        return cls

    def __exit__(cls, *_):
        return None

    def __int__(cls):
        return 0

    __index__ = __int__
    __hash__ = type.__hash__

    def __eq__(cls, other):
        return cls is other


class Anything(metaclass=_Meta):
    """A value, a class, a function or a decorator, as it is needed."""

    def __new__(cls, *given, **_):
        if len(given) == 1 and callable(given[0]) and not isinstance(given[0], _Meta):
            return given[0]  # a decorator
        if cls.__mro__[1] is Anything or cls is Anything:
            return cls
        return super().__new__(cls)

    def __init__(self, *_, **__):
        pass

    def __init_subclass__(cls, **_):
        pass


def _made(name):
    return _Meta(name, (Anything,), {"__module__": __name__})


class _Version(str):
    """Newer than any other."""

    __slots__ = ()

    def __lt__(self, _):
        return False

    def __gt__(self, _):
        return True

    __ge__, __le__ = __gt__, __lt__


class _Absent(ModuleType):
    __version__ = _Version("99.0.0")
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = _made(name)
        setattr(self, name, made)
        return made


class _Finder:
    """Finds what lies below names that are stood in for."""

    def __init__(self, names):
        self._names = frozenset(names)

    def find_spec(self, name, _=None, __=None):
        if name in self._names or name.partition(".")[0] in self._names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Absent(spec.name)

    def exec_module(self, module):
        pass


def stand_in(*names):
    """From here on modules of these names, and all below them, can be imported."""
    sys.meta_path.insert(0, _Finder(names))
