"""The II search: which IIs are tried, in which order, and with how much work."""

from stretto.generate.search.hunt import Found, Progress, search

__all__ = ["Found", "Progress", "search"]
