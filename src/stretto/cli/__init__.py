"""The command line: parsing arguments, and nothing else."""
