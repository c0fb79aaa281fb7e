"""A budget of memory that threads share."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from newkind.data.memory_budget import MemoryBudget


def test_threads_never_use_more_than_the_total_except_one_alone() -> None:
    budget, used, most, alone = MemoryBudget(10), [0], [0], []
    lock = threading.Lock()

    def work(n_bytes: int) -> None:
        with budget.reserved(n_bytes):
            with lock:
                used[0] += n_bytes
                most[0] = max(most[0], used[0]) if n_bytes <= 10 else most[0]
                if n_bytes > 10:
                    alone.append(used[0])
            time.sleep(0.001)  # the other threads get their turn
            with lock:
                used[0] -= n_bytes

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [3, 4, 25, 6, 10, 1, 30, 9] * 20))
    assert most[0] <= 10
    assert set(alone) == {25, 30}
    assert used == [0]


def test_an_error_returns_what_was_reserved() -> None:
    budget = MemoryBudget(10)
    for _ in range(3):
        try:
            with budget.reserved(10):
                raise ValueError
        except ValueError:
            pass
    with budget.reserved(10):
        pass
