"""The Python builder, and other people's formats."""

from stretto.frontends.builder import LoopBuilder, Ref, build
from stretto.frontends.source import Source, read_source

__all__ = ["LoopBuilder", "Ref", "Source", "build", "read_source"]
