"""These tests compute in one thread."""

from one_thread import one_thread

__all__ = ["one_thread"]
