"""Album workflows: executions of two workflow types, the albums they find, tasks for people, daily metrics."""
