"""A Jobtable server from elsewhere: it is read as a store, and written to by its REST API."""
