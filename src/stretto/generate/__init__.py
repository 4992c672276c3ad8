"""Finding schedules: the serial walk, and the cost-based ladder with its gates and arms."""
