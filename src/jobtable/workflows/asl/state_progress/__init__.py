"""How far the states of an execution are, read from its history."""
