"""The server: a REST API and web pages over the services."""
