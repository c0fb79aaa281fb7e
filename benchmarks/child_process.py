"""Arguments of benchmarks that measure in processes of their own, so that each has its own memory."""

from __future__ import annotations

import argparse

__all__ = ["read_arguments"]


def read_arguments(description: str | None) -> argparse.Namespace:
    """`quick`, and in a child process `child`: what to measure, and its input."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()
