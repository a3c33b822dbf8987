"""all-MiniLM-L6-v2 in this process: vectors without a service. Needs the extra `embeddings`."""
