"""Measurements: each module prints a table and keeps it as JSON beside itself."""
