"""What is worked out once, where somebody asks for it: `cached_property`, without a lock.

Up to Python 3.11 that of `functools` takes a lock for every value, which nothing of ours needs:
whoever comes at the same time works out the same. From 3.12 on it takes none.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - as functools has it
        """A value of an instance, kept in its `__dict__` from the first look on."""

        def __init__(self, func):
            self.func = func
            self.__doc__ = func.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.func(instance)
            return value


__all__ = ["cached_property"]
