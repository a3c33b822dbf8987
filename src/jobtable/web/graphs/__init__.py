"""Graphs that the server lays out and pages draw as SVG."""
