"""Passes over modules with tile loops: one that schedules them, one that verifies schedules."""
