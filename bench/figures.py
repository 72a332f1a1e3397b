# SPDX-License-Identifier: GPL-2.0-or-later
"""What is computed of logs: pauses, lost time and hand-over, medians, tables. No clock, no files.

All times are seconds; those with a date are seconds since the epoch.

  pause             from the end of the old world's last step to the end of the new world's first
                    one
  beyond a step     the pause less the median of undisturbed steps of the new world, and of each
                    world between
  between steps     the pause less the first step of the new world, and of each world between. It
                    has no noise of steps, but lacks what a first step takes longer than others
  lost time         from the event until WINDOW seconds after the end of the first new step, less
                    what an undisturbed training would have needed for the steps that were made in
                    it: their number times the median of undisturbed steps in a world of that size.
                    What is done early, and slows the old world's steps down, counts; so do steps
                    that are made twice. It can be negative by noise
  submit to start   of the job that wants the nodes
  SIGTERM to free   from Slurm's SIGTERM to a job to the end of its last epilog, the longest of
                    those that gave up nodes
"""

import datetime
import json
import re
import statistics
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

WINDOW = 10.0
SETTLED = 1.0  # from its first step on a world counts as undisturbed after so many seconds


class Step(NamedTuple):
    """One optimizer step, as rank 0 has logged it."""

    world: str
    size: int
    number: int
    kind: str
    begin: float
    end: float


class Save(NamedTuple):
    """One checkpoint."""

    begin: float
    end: float


def read_log(lines: Iterable[str]) -> Tuple[List[Step], List[Save]]:
    """Steps and checkpoints of train.py's log, in the order of their begin. A last line that is not
    complete is not there yet."""
    steps, saves = [], []
    for line in lines:
        if not line.endswith("\n"):
            continue
        record = json.loads(line)
        if "save" in record:
            saves.append(Save(record["begin"], record["end"]))
        else:
            steps.append(
                Step(*(record[key] for key in ("world", "size", "step", "kind", "begin", "end")))
            )
    return sorted(steps, key=lambda step: step.begin), sorted(saves)


def worlds(steps: Sequence[Step]) -> List[List[Step]]:
    """The steps of each world, worlds in the order of their first step."""
    found: Dict[str, List[Step]] = {}
    for step in steps:
        found.setdefault(step.world, []).append(step)
    return list(found.values())


def fresh(steps: Sequence[Step]) -> List[Step]:
    """The steps that had not been made before: a world that resumes from an old checkpoint repeats
    some.
    """
    result: List[Step] = []
    for step in steps:
        if not result or step.number > result[-1].number:
            result.append(step)
    return result


def new_world(steps: Sequence[Step], event: float, size: int) -> Optional[List[Step]]:
    """The first world of that size that began after the event, None if there is none yet."""
    for world in worlds(steps):
        if world[0].size == size and world[0].begin >= event:
            return world
    return None


def window_is_over(steps: Sequence[Step], event: float, size: int) -> bool:
    """Whether all that change_figures() looks at has been logged."""
    world = new_world(steps, event, size)
    return world is not None and world[-1].end >= world[0].end + WINDOW


def undisturbed(
    steps: Sequence[Step],
    events: Sequence[float],
    kind: str,
    middle: Callable[[List[float]], float] = statistics.median,
) -> Dict[int, float]:
    """Median step time by world size (or the mean, whose inverse is the rate): of steps that began
    SETTLED after the first step of their world and kind, and ended before the next event. Sizes
    that never settled: of all their steps.
    """
    settled: Dict[int, List[float]] = {}
    every: Dict[int, List[float]] = {}
    for world in worlds([step for step in steps if step.kind == kind]):
        begin = world[0].begin + SETTLED
        end = min((event for event in events if event > world[0].begin), default=float("inf"))
        for step in world:
            every.setdefault(step.size, []).append(step.end - step.begin)
            if step.begin >= begin and step.end <= end:
                settled.setdefault(step.size, []).append(step.end - step.begin)
    return {size: middle(settled.get(size, all_steps)) for size, all_steps in every.items()}


def pauses(steps: Sequence[Step], event: float, size: int) -> List[Tuple[int, float]]:
    """Of each world that begins after the event, until the first of that size: its size, and the
    seconds from the last step before it to the end of its first one.
    """
    last = new_world(steps, event, size)
    found: List[Tuple[int, float]] = []
    before = None
    for world in worlds(steps):
        if before is not None and world[0].begin >= event:
            found.append((world[0].size, world[0].end - before[-1].end))
        before = world
        if last is not None and world[0].world == last[0].world:
            return found
    raise ValueError(f"no world of {size} after the event")


def lost_time(steps: Sequence[Step], event: float, size: int, normal: Dict[int, float]) -> float:
    """See above. A step that lies partly within the time counts with that part of it.

    normal    undisturbed step time by world size
    """
    world = new_world(steps, event, size)
    if world is None:
        raise ValueError(f"no world of {size} after the event")
    until = world[0].end + WINDOW
    useful = 0.0
    for step in fresh(steps):
        inside = min(step.end, until) - max(step.begin, event)
        if inside > 0:
            useful += inside / (step.end - step.begin) * normal[step.size]
    return until - event - useful


def change_figures(
    steps: Sequence[Step], saves: Sequence[Save], event: float, size: int, normal: Dict[int, float]
) -> Dict[str, object]:
    """The figures of one change of size."""
    world = new_world(steps, event, size)
    if world is None:
        raise ValueError(f"no world of {size} after the event")
    first = world[0]
    after = [step for step in steps if step.begin >= event]
    inside = [save.end - save.begin for save in saves if event <= save.begin <= first.end]
    found = pauses(steps, event, size)
    whole = sum(seconds for _, seconds in found)
    begun = [world[0] for world in worlds(steps)]
    firsts = [step for step in begun if event <= step.begin <= first.begin]
    return {
        "pause": whole,
        "beyond": whole - sum(normal[each] for each, _ in found),
        "between": whole - sum(step.end - step.begin for step in firsts),
        "lost": lost_time(steps, event, size, normal),
        "event_to_first_step": first.end - event,
        "repeated_steps": len(after) - len([step for step in fresh(steps) if step.begin >= event]),
        "save": max(inside, default=None),
        "normal_step": normal,
        "event": event,
    }


# ---- long disturbances ---------------------------------------------------------------------------


def seconds_by_size(
    changes: Sequence[Tuple[float, int]], begin: float, end: float
) -> Dict[int, float]:
    """How long there were nodes for worlds of each size.

    changes   (time, size from then on), in order; the first one at or before begin
    """
    found: Dict[int, float] = {}
    for (since, size), until in zip(changes, [time for time, _ in changes[1:]] + [end]):
        inside = min(until, end) - max(since, begin)
        if inside > 0:
            found[size] = found.get(size, 0.0) + inside
    return found


def usual_step(measures: Sequence[Dict]) -> Dict[int, float]:
    """Median over all peers of their undisturbed step time by size, for one that was never
    undisturbed in it.

    measures  records with "normal_step"
    """
    times: Dict[int, List[float]] = {}
    for measure in measures:
        for size, seconds in measure["normal_step"].items():
            times.setdefault(size, []).append(seconds)
    return {size: statistics.median(seconds) for size, seconds in times.items()}


def bound(seconds: Dict[int, float], step: Dict[int, float]) -> float:
    """The part of the steps of a world that always has all its nodes which one can make that loses
    no time, but is never larger than the nodes there are.

    seconds   with nodes for each size
    step      mean undisturbed step time by size
    """
    return (
        sum(time / step[size] for size, time in seconds.items())
        * step[max(step)]
        / sum(seconds.values())
    )


def steps_made(steps: Sequence[Step], begin: float, end: float) -> float:
    """Steps in that time, each once; one that lies partly within it counts with that part of it."""
    return sum(
        max(0.0, min(step.end, end) - max(step.begin, begin)) / (step.end - step.begin)
        for step in fresh(steps)
    )


# ---- Slurm's side --------------------------------------------------------------------------------

_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\] (.*)")
_SIGNALLED = re.compile(r"job_signal: 15 of running JobId=(\d+)")
_FREE = re.compile(r"debug2: _slurm_rpc_epilog_complete: JobId=(\d+) Node=(\S+)")


def sigterm_to_free(lines: Iterable[str], begin: float, end: float) -> Optional[float]:
    """From the first SIGTERM to a job to its last epilog, within that time: the longest of the jobs
    that got one.

    lines     slurmctld's log at level debug2; times are local
    """
    asked: Dict[str, float] = {}
    free: Dict[str, float] = {}
    for line in lines:
        stamp = _STAMP.match(line)
        if not stamp:
            continue
        time = datetime.datetime.fromisoformat(stamp[1]).timestamp()
        if not begin <= time <= end:
            continue
        signalled, ended = _SIGNALLED.match(stamp[2]), _FREE.match(stamp[2])
        if signalled:
            asked.setdefault(signalled[1], time)
        elif ended and ended[1] in asked:
            free[ended[1]] = time
    return max((free[job] - asked[job] for job in free), default=None)


# ---- tables --------------------------------------------------------------------------------------

# What is shown of each change: (change, figure, heading)
COLUMNS = (
    ("grow", "pause", "grow: pause"),
    ("grow", "beyond", "grow: beyond a step"),
    ("grow", "lost", "grow: lost"),
    ("shrink", "pause", "shrink: pause"),
    ("shrink", "beyond", "shrink: beyond a step"),
    ("shrink", "lost", "shrink: lost"),
    ("shrink", "submit_to_start", "submit to start"),
    ("shrink", "sigterm_to_free", "SIGTERM to free"),
)


class Spread(NamedTuple):
    """Several rounds of one figure."""

    median: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        digits = 2 if self.median < 9.5 else 1
        return f"{self.median:.{digits}f} [{self.low:.{digits}f}–{self.high:.{digits}f}]"


def _workload(record: Dict) -> Tuple[int, str]:
    return record["megabytes"], record["step"]


def summary(measures: Sequence[Dict], ours: str) -> List[Dict]:
    """One record per workload, peer and column, in the order of the measures: median, low, high,
    rounds and ratio to the peer `ours` (None where that one's median is not positive, or missing).

    measures  records with "peer", "megabytes", "step", "change" and figures; one with "error" has
              none
    """
    groups: Dict[Tuple[Tuple[int, str], str, str, str], List[float]] = {}
    order: Dict[Tuple[Tuple[int, str], str], None] = {}
    for measure in measures:
        order[_workload(measure), measure["peer"]] = None
        for change, figure, _ in COLUMNS:
            if measure["change"] == change and measure.get(figure) is not None:
                groups.setdefault((_workload(measure), measure["peer"], change, figure), []).append(
                    measure[figure]
                )
    records = []
    for workload, peer in order:
        for change, figure, _ in COLUMNS:
            values = groups.get((workload, peer, change, figure))
            if not values:
                continue
            own = groups.get((workload, ours, change, figure))
            base = statistics.median(own) if own else 0.0
            records.append(
                {
                    "megabytes": workload[0],
                    "step": workload[1],
                    "peer": peer,
                    "change": change,
                    "figure": figure,
                    **Spread(
                        statistics.median(values), min(values), max(values), len(values)
                    )._asdict(),
                    "ratio": statistics.median(values) / base if base > 0 else None,
                }
            )
    return records


def markdown(records: Sequence[Dict], titles: Dict[str, str]) -> str:
    """A table per workload, a row per peer. Each cell: median [low–high] and, for others than the
    first, the ratio to it.

    titles    what to call each peer
    """
    parts = []
    for workload in dict.fromkeys(_workload(record) for record in records):
        cells = {
            (r["peer"], r["change"], r["figure"]): r for r in records if _workload(r) == workload
        }
        peers = list(dict.fromkeys(peer for peer, _, _ in cells))
        rounds = sorted({record["rounds"] for record in cells.values()})
        count = str(rounds[0]) if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
        kind = {"sleep": "steps that sleep", "cpu": "CPU-bound steps"}.get(workload[1], workload[1])
        parts.append(
            f"**{workload[0]} MB, {kind}**, {count} {'round' if count == '1' else 'rounds'}; "
            "seconds, median [min–max], × = ratio to the first row\n"
        )
        parts.append("| | " + " | ".join(heading for _, _, heading in COLUMNS) + " |")
        parts.append("|---" * (len(COLUMNS) + 1) + "|")
        for peer in peers:
            row = [
                _cell(cells.get((peer, change, figure)), peer == peers[0])
                for change, figure, _ in COLUMNS
            ]
            parts.append(f"| {titles.get(peer, peer)} | " + " | ".join(row) + " |")
        parts.append("")
    return "\n".join(parts).rstrip("\n") + "\n"


def _cell(record: Optional[Dict], first: bool) -> str:
    if record is None:
        return "–"
    text = str(Spread(*(record[field] for field in Spread._fields)))
    if not first and record["ratio"] is not None and record["figure"] != "beyond":
        text += f" {record['ratio']:.1f}×"
    return text


# What is promised: the peer, (peer it is compared with, change, share of that one's figures), by MB
_SHARES = {
    "elastic": {
        1: (
            ("torchrun", "grow", 1 / 2),
            ("torchrun", "shrink", 1 / 10),
            ("resubmit", "grow", 1),
            ("resubmit", "shrink", 1),
        )
    },
    "live": {
        1: tuple(
            (peer, change, share)
            for peer, share in (("torchrun", 1 / 20), ("resubmit", 1 / 5))
            for change in ("grow", "shrink")
        ),
        100: (
            ("torchrun", "shrink", 1 / 20),
            ("resubmit", "grow", 1 / 3),
            ("resubmit", "shrink", 1 / 3),
        ),
    },
    "sharded-live": {
        megabytes: tuple(
            (peer, change, 1 / 10)
            for peer in ("sharded-torchrun", "sharded-torchrun-tuned")
            for change in ("grow", "shrink")
        )
        for megabytes in (100, 1000)
    },
}
# Steps of a large model on few processors are long, and all peers make one.
_COMPARED = {"sharded-live": ("beyond",)}
_BEYOND = {"live": {1: 0.3, 100: 1.0}}  # seconds of pause beyond a step


def verdicts(records: Sequence[Dict], measures: Sequence[Dict]) -> List[Tuple[bool, str]]:
    """Whether what this project promises has been held: (held, sentence) for each promise that can
    be judged.
    """
    medians = {(_workload(r), r["peer"], r["change"], r["figure"]): r["median"] for r in records}
    result = []

    def judge(own: Optional[float], limit: Optional[float], sentence: str) -> None:
        if own is not None and limit is not None:
            result.append((own <= limit, f"{sentence} {own:.2f} s, at most {limit:.2f} s"))

    for workload in dict.fromkeys(_workload(record) for record in records):
        megabytes, step = workload
        for ours, promises in _SHARES.items():
            for peer, change, share in promises.get(megabytes, ()):
                for figure in _COMPARED.get(ours, ("pause", "lost")):
                    own, other = (
                        medians.get((workload, each, change, figure)) for each in (ours, peer)
                    )
                    limit = None if other is None else share * other
                    judge(
                        own,
                        limit,
                        f"{megabytes} MB, {step}, {change}: {ours}, {figure}, 1/{1 / share:g} of {peer}'s:",
                    )
        for ours, limits in _BEYOND.items():
            for change in ("grow", "shrink"):
                own = medians.get((workload, ours, change, "beyond"))
                judge(
                    own,
                    limits.get(megabytes),
                    f"{megabytes} MB, {step}, {change}: {ours}, pause beyond a step:",
                )
    for measure in measures:
        free, save = measure.get("sigterm_to_free"), measure.get("save")
        if measure["peer"] not in _SHARES or free is None:
            continue
        # Live mode saves nothing, but the step in flight is made.
        step = max(measure["normal_step"].values()) if "live" in measure["peer"] else 0.0
        sentence = f"{measure['megabytes']} MB, {measure['step']}, round {measure['round']}: {measure['peer']}, SIGTERM to free:"
        judge(free, (save or 0.0) + step + 1.0, sentence)
    return result
