"""The services that Task states and distributed Maps ask, on the same store and object store."""
