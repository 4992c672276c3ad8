"""What a kernel file imports, without any of it installed: Triton, Gluon, torch, pytest.

Each module carries the names that its original has, with the sanitizer behind them.
"""
