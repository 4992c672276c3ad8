"""Results for people and for programs: text and JSON are two views of the same value."""
