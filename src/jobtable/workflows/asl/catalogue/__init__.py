"""What is registered beside the executions: state machines with their versions and aliases, and activities."""
