"""One command, killed and with failing writes: it has to end in the same bytes when it is repeated."""

import errno
import random
import shutil
from pathlib import Path

from commands import KILL, Ended, Fault, run_command
from scenarios import Content, Scenario, leftovers
from sessions import ACKNOWLEDGED

__all__ = ["ERRORS", "Torture"]

ERRORS = {"no space": (2, errno.ENOSPC), "I/O error": (1, errno.EIO)}


class Torture:
    """One scenario with its folders and its expected end."""

    def __init__(self, scenario: Scenario, home: Path, other: Path) -> None:
        self.scenario = scenario
        self.start, self.work, self.other, self.log = home / "start", home / "work", other, home / "log.txt"
        self.failures: list[str] = []
        self.finished: set[str] = set()
        self.arguments = [word.replace("OTHER", str(other)) for word in scenario.arguments]
        for folder in (self.start, self.work):
            shutil.rmtree(folder, ignore_errors=True)
        self.work.mkdir()
        scenario.prepare(self.work)
        for command in scenario.before:
            done = run_command(list(command), (self.work, self.other), self.log)
            assert done.code == 0, done.output
        shutil.copytree(self.work, self.start, symlinks=True)
        self.fresh()
        self.treasure = scenario.kept(self.work, self.other)
        done = self.run(Fault(0))
        assert done.code == 0, done.output
        self.expected: Content = scenario.content(self.work, self.other)
        self.sites, self.seconds = done.sites, done.seconds
        assert self.expected, scenario.name
        assert self.sites, scenario.name
        assert not leftovers(self.work, self.other)

    def fresh(self) -> None:
        """Everything as it was before the command."""
        for folder in (self.work, self.other):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.start, self.work, symlinks=True)
        self.other.mkdir()
        (self.work.parent / ACKNOWLEDGED.name).unlink(missing_ok=True)

    def run(self, fault: Fault | None = None, kill_after: float | None = None) -> Ended:
        """Run the command on what is there."""
        return run_command(self.arguments, (self.work, self.other), self.log, fault=fault, kill_after=kill_after)

    def kill(self, rng: random.Random) -> int:
        """Kill the command one to three times, each time on what the last one left, and let it finish; returns the kills."""
        self.fresh()
        n_kills = 0
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if rng.random() < 0.5:
                moment = rng.uniform(0, self.seconds)
                done = self.run(kill_after=moment)
                what = f"killed after {moment:.2f} s"
            else:
                number = rng.randint(1, len(self.sites))
                done = self.run(Fault(number, KILL))
                what = f"killed in call {number}"
            if done.code == -9:
                n_kills += 1
            elif not done.plainly:
                self.fail(what, done)
            self.check_kept(what, done)
        self.finish(what)
        return n_kills

    def calls(self, rng: random.Random) -> list[int]:
        """Numbers of all calls in random order, but first one of each site."""
        numbers = list(range(1, len(self.sites) + 1))
        rng.shuffle(numbers)
        first = {self.sites[number - 1]: number for number in reversed(numbers)}
        return sorted(numbers, key=lambda number: first[self.sites[number - 1]] != number)

    def fail_writing(self, kind: str, number: int) -> None:
        """Let a call fail; the command has to say so, and to finish when it is repeated."""
        self.fresh()
        action, code = ERRORS[kind]
        done = self.run(Fault(number, action, code))
        what = f"{kind} at call {number}"
        if not done.plainly:
            self.fail(what, done)
        self.check_kept(what, done)
        left = self.scenario.digest(self.work, self.other)
        if left not in self.finished:  # many errors leave the same files, from which the command ended well before
            n_before = len(self.failures)
            self.finish(what)
            self.finished |= {left} if len(self.failures) == n_before else set()

    def check_kept(self, what: str, done: Ended) -> None:
        """Nothing may be lost at any moment."""
        try:
            kept = self.scenario.kept(self.work, self.other)
        except Exception as error:  # noqa: BLE001 - whatever it is, something cannot be read
            self.fail(f"{what}: {type(error).__name__} {error}", done)
            return
        if kept != self.treasure:
            self.fail(f"{what}: {len(self.treasure) - len(kept)} files were lost", done)

    def finish(self, what: str) -> None:
        """The same command ends in the same bytes, or says that the result exists."""
        done = self.run()
        found = self.scenario.content(self.work, self.other)
        is_complete = done.code == 0 or (done.code == 2 and "[exists]" in done.output)
        if not is_complete or found != self.expected:
            names = {name for name in found.keys() | self.expected.keys() if found.get(name) != self.expected.get(name)}
            self.fail(f"{what}: another end, different: {sorted(names)[:4]}", done)
        if remaining := leftovers(self.work, self.other):
            self.fail(f"{what}: left behind: {remaining[:3]}", done)

    def fail(self, what: str, done: Ended) -> None:
        """Write down a failure and print what the command said."""
        self.failures.append(what)
        print(f"FAILED {self.scenario.name}: {what} (exit code {done.code})\n{done.output[-3000:]}", flush=True)
