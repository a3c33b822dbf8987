"""The Amazon States Language: definitions, their interpretation, and executions that survive a kill."""
