"""Measurements that need a process of their own: JSON arguments in, a JSON answer out (`calls.py`)."""
