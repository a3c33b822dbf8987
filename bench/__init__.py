"""Measurements against peers: `make bench`, or `make bench ARGS="round_trip scale"` for some of them."""
