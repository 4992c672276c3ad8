"""Executes the sequential loop and the pipelined programs, cycle by cycle, and compares them."""
