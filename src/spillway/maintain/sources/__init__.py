"""Databases that hold the sources of maintained views, behind one protocol (`server.py`)."""
