"""The exact solver: CP-SAT finds the smallest II, or proves that there is none."""
