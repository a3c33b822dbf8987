"""Jobs, their records, queues and instances: the backbone of the systems."""
