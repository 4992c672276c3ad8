"""Passes over modules with tile loops: they schedule, verify schedules, and materialize them."""
