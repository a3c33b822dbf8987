"""Clients of a Jobtable server: it is read as a store and changed by its REST API."""
