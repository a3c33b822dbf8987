"""The command `jobtable`: one file a command group."""
