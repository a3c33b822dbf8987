"""Step Functions' API: AWS's requests, answers and errors over the verbs of machines and executions."""
