#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The arithmetic of benchmarks, on logs with known pauses."""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import unittest

import tap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import figures
import foresight
import page
import serve_preempted
import spot_traces
import transfers

SHORT, LONG = 0.1, 0.2  # step times of worlds of 2 and of 4


class Training:
    """Makes a log as train.py would, on a clock of its own."""

    def __init__(self):
        self.now, self.number, self.steps = 1000.0, 0, []

    def world(self, size, count, seconds, kind="sleep"):
        name = f"{self.now}-{size}"
        for _ in range(count):
            self.steps.append(
                figures.Step(name, size, self.number, kind, self.now, self.now + seconds)
            )
            self.now += seconds
            self.number += 1
        return self

    def idle(self, seconds):
        self.now += seconds
        return self


def grow(pause=3.0, slow=SHORT, slow_steps=0):
    """60 steps on 2 nodes; the event; `slow_steps` slow ones; a pause; 100 steps on 4. (training,
    event)
    """
    training = Training().world(2, 60, SHORT)
    event = training.now
    if slow_steps:
        last = training.steps[-1].world
        training.world(2, slow_steps, slow)
        training.steps[-slow_steps:] = [
            step._replace(world=last) for step in training.steps[-slow_steps:]
        ]
    return training.idle(pause).world(4, 100, LONG), event


NORMAL = {2: SHORT, 4: LONG}


class Log(unittest.TestCase):
    def test_steps_and_saves(self):
        step = {"world": "a", "size": 2, "step": 7, "kind": "cpu", "begin": 1.0, "end": 2.0}
        save = {"world": "a", "size": 2, "save": 8, "begin": 2.0, "end": 2.5}
        lines = [json.dumps(record) + "\n" for record in (save, step)]
        steps, saves = figures.read_log([*lines, '{"world": "a", "si'])
        self.assertEqual(steps, [figures.Step("a", 2, 7, "cpu", 1.0, 2.0)])
        self.assertEqual(saves, [figures.Save(2.0, 2.5)])


class Pause(unittest.TestCase):
    def assert_pauses(self, training, event, *expected):
        found = figures.pauses(training.steps, event, 4)
        self.assertEqual([size for size, _ in found], [size for size, _ in expected])
        for (_, seconds), (_, right) in zip(found, expected):
            self.assertAlmostEqual(seconds, right)

    def test_known(self):
        training, event = grow(pause=3.0)
        self.assert_pauses(training, event, (4, 3.0 + LONG))

    def test_a_world_between_is_no_pause(self):
        training = Training().world(2, 60, SHORT)
        event = training.now
        training.idle(1).world(3, 10, SHORT).idle(2).world(4, 100, LONG)
        self.assert_pauses(training, event, (3, 1 + SHORT), (4, 2 + LONG))
        found = figures.change_figures(training.steps, [], event, 4, {**NORMAL, 3: SHORT})
        self.assertAlmostEqual(found["pause"], 1 + SHORT + 2 + LONG)
        self.assertAlmostEqual(found["beyond"], 3)
        self.assertAlmostEqual(found["between"], 3)
        self.assertAlmostEqual(figures.lost_time(training.steps, event, 4, {**NORMAL, 3: SHORT}), 3)

    def test_none_yet(self):
        training, event = grow()
        with self.assertRaisesRegex(ValueError, "no world of 3"):
            figures.pauses(training.steps, event, 3)

    def test_when_the_window_is_over(self):
        training, event = grow()
        first = next(number for number, step in enumerate(training.steps) if step.size == 4)
        enough = first + 1 + round(figures.WINDOW / LONG)
        self.assertTrue(figures.window_is_over(training.steps[: enough + 1], event, 4))
        self.assertFalse(figures.window_is_over(training.steps[: enough - 1], event, 4))
        self.assertFalse(figures.window_is_over(training.steps[:first], event, 4))


class LostTime(unittest.TestCase):
    def test_is_the_idle_time_where_nothing_else_is_lost(self):
        training, event = grow(pause=3.0)
        self.assertAlmostEqual(figures.lost_time(training.steps, event, 4, NORMAL), 3.0)

    def test_is_nothing_without_a_pause(self):
        training, event = grow(pause=0.0)
        self.assertAlmostEqual(figures.lost_time(training.steps, event, 4, NORMAL), 0.0)

    def test_work_moved_before_the_pause_counts(self):
        """Two seconds of old steps at half speed lose one second, though the pause is the same."""
        training, event = grow(pause=0.5, slow=2 * SHORT, slow_steps=10)
        self.assertAlmostEqual(
            sum(seconds for _, seconds in figures.pauses(training.steps, event, 4)), 0.5 + LONG
        )
        self.assertAlmostEqual(figures.lost_time(training.steps, event, 4, NORMAL), 1.5)

    def test_work_moved_behind_the_pause_counts(self):
        training = Training().world(2, 60, SHORT)
        event = training.now
        training.idle(1).world(4, 10, LONG + 0.1)
        name = training.steps[-1].world
        training.world(4, 100, LONG)
        training.steps = [
            step._replace(world=name) if step.size == 4 else step for step in training.steps
        ]
        self.assertAlmostEqual(figures.lost_time(training.steps, event, 4, NORMAL), 1 + 10 * 0.1)

    def test_repeated_steps_count(self):
        """The new world goes back by 20 steps, which take it 20 * LONG."""
        training = Training().world(2, 60, SHORT)
        event = training.now
        training.number -= 20
        training.idle(1).world(4, 100, LONG)
        self.assertAlmostEqual(figures.lost_time(training.steps, event, 4, NORMAL), 1 + 20 * LONG)
        found = figures.change_figures(training.steps, [], event, 4, NORMAL)
        self.assertEqual(found["repeated_steps"], 20)

    def test_an_event_in_the_middle_of_a_step(self):
        training, event = grow(pause=3.0)
        self.assertAlmostEqual(figures.lost_time(training.steps, event - SHORT / 4, 4, NORMAL), 3.0)

    def test_change_figures(self):
        training, event = grow(pause=3.0)
        saves = [figures.Save(event - 5, event - 4), figures.Save(event + 1, event + 1.25)]
        found = figures.change_figures(training.steps, saves, event, 4, NORMAL)
        self.assertAlmostEqual(found["save"], 0.25)
        self.assertAlmostEqual(found["event_to_first_step"], 3.0 + LONG)
        self.assertEqual(found["repeated_steps"], 0)


class Undisturbed(unittest.TestCase):
    def test_begin_and_end_of_a_world_do_not_count(self):
        warming = round(figures.SETTLED / 0.5)
        training = Training().world(2, warming, 0.5)
        name = training.steps[0].world
        training.world(2, 30, SHORT)
        event = training.now
        training.world(2, 200, 0.4)
        training.steps = [step._replace(world=name) for step in training.steps]
        self.assertAlmostEqual(figures.undisturbed(training.steps, [event], "sleep")[2], SHORT)

    def test_kinds_are_apart(self):
        training = Training().world(2, 60, SHORT).world(2, 60, 0.3, kind="cpu")
        self.assertAlmostEqual(figures.undisturbed(training.steps, [], "sleep")[2], SHORT)
        self.assertAlmostEqual(figures.undisturbed(training.steps, [], "cpu")[2], 0.3)

    def test_a_short_world_has_its_own_steps(self):
        training = Training().world(3, 5, LONG)
        self.assertAlmostEqual(figures.undisturbed(training.steps, [], "sleep")[3], LONG)


class HandOver(unittest.TestCase):
    LOG = """\
[2026-03-01T10:00:01.000] job_signal: 15 of running JobId=9 successful 0x400001
[2026-03-01T10:00:02.000] _slurm_rpc_submit_batch_job: JobId=12 InitPrio=1 usec=7
[2026-03-01T10:00:02.500] job_signal: 18 of running JobId=10 successful 0x400001
[2026-03-01T10:00:02.600] job_signal: 15 of running JobId=10 successful 0x400001
[2026-03-01T10:00:02.700] job_signal: 15 of running JobId=11 successful 0x400001
[2026-03-01T10:00:02.800] debug2: _slurm_rpc_epilog_complete: JobId=9 Node=n4
[2026-03-01T10:00:03.000] debug2: _slurm_rpc_epilog_complete: JobId=10 Node=n1
[2026-03-01T10:00:03.100] debug2: _slurm_rpc_epilog_complete: JobId=11 Node=n2
[2026-03-01T10:00:03.300] debug2: _slurm_rpc_epilog_complete: JobId=11 Node=n4
[2026-03-01T10:00:03.200] debug2: _slurm_rpc_epilog_complete: JobId=8 Node=n3
something without a time
[2026-03-01T10:00:09.000] debug2: _slurm_rpc_epilog_complete: JobId=10 Node=n1
""".splitlines()

    def at(self, second):
        return datetime.datetime(2026, 3, 1, 10, 0, second).timestamp()

    def test_from_its_signal_to_its_last_epilog_of_the_slowest_job(self):
        self.assertAlmostEqual(
            figures.sigterm_to_free(self.LOG, self.at(2), self.at(4)), 0.6, places=3
        )

    def test_nobody_was_signalled(self):
        self.assertIsNone(figures.sigterm_to_free(self.LOG, self.at(4), self.at(5)))


class Disturbances(unittest.TestCase):
    def test_seconds_by_size(self):
        changes = [(0.0, 4), (15.0, 3), (25.0, 4), (45.0, 3), (55.0, 4)]
        self.assertEqual(figures.seconds_by_size(changes, 0.0, 60.0), {4: 40.0, 3: 20.0})
        self.assertEqual(figures.seconds_by_size(changes, 20.0, 50.0), {3: 10.0, 4: 20.0})

    def test_bound(self):
        # A third of the time at three quarters of the rate.
        self.assertAlmostEqual(figures.bound({4: 40.0, 3: 20.0}, {4: 0.06, 3: 0.08}), 1 - 1 / 3 / 4)
        self.assertAlmostEqual(figures.bound({4: 60.0}, {4: 0.06, 3: 0.08}), 1)

    def test_usual_step(self):
        measures = [{"normal_step": {4: 1.0, 2: 5.0}}, {"normal_step": {4: 3.0}}]
        self.assertEqual(figures.usual_step(measures), {4: 2.0, 2: 5.0})

    def test_steps_that_are_made_again_count_once(self):
        training = Training().world(4, 50, LONG)
        training.number = 30  # it resumes from a checkpoint
        training.world(3, 40, LONG)
        self.assertAlmostEqual(figures.steps_made(training.steps, 1000.0, training.now), 70)
        self.assertAlmostEqual(
            figures.steps_made(training.steps, 1000.0 + 1.5 * LONG, 1000.0 + 4 * LONG), 2.5
        )


class Tables(unittest.TestCase):
    MEASURES = [
        {
            "round": number,
            "peer": peer,
            "megabytes": 1,
            "step": "sleep",
            "change": change,
            "pause": pause,
            "beyond": pause - 0.5,
            "lost": pause + 1,
        }
        for peer, pauses in (("elastic", (1.0, 2.0, 9.0)), ("torchrun", (20.0, 30.0, 40.0)))
        for change in ("grow", "shrink")
        for number, pause in enumerate(pauses, 1)
    ] + [
        {
            "round": 3,
            "peer": "elastic",
            "megabytes": 1,
            "step": "sleep",
            "change": "shrink",
            "sigterm_to_free": 1.2,
            "save": 0.1,
        }
    ]

    def test_summary(self):
        records = figures.summary(self.MEASURES, "elastic")
        found = {(r["peer"], r["change"], r["figure"]): r for r in records}
        ours, theirs = found["elastic", "grow", "pause"], found["torchrun", "grow", "pause"]
        self.assertEqual(
            (ours["median"], ours["low"], ours["high"], ours["rounds"]), (2.0, 1.0, 9.0, 3)
        )
        self.assertEqual(ours["ratio"], 1.0)
        self.assertEqual(theirs["ratio"], 15.0)
        self.assertNotIn(("torchrun", "shrink", "sigterm_to_free"), found)

    def test_no_ratio_to_nothing(self):
        measures = [
            {**measure, "pause": 0.0} for measure in self.MEASURES if measure["peer"] == "elastic"
        ]
        for record in figures.summary([*measures, *self.MEASURES[6:]], "elastic"):
            if record["figure"] == "pause" and record["peer"] == "elastic":
                self.assertIsNone(record["ratio"])

    def test_markdown(self):
        text = figures.markdown(
            figures.summary(self.MEASURES, "elastic"), {"torchrun": "torchrun, as it is"}
        )
        lines = text.splitlines()
        cells = "2.00 [1.00–9.00] | 1.50 [0.50–8.50] | 3.00 [2.00–10.00]"
        self.assertIn(f"| elastic | {cells} | {cells} | – | 1.20 [1.20–1.20] |", lines)
        self.assertIn(
            "| torchrun, as it is | 30.0 [20.0–40.0] 15.0× | 29.5 [19.5–39.5] | 31.0 [21.0–41.0] 10.3×",
            text,
        )
        self.assertEqual({line.count("|") for line in lines if line.startswith("|")}, {10})
        self.assertIn("**1 MB, steps that sleep**", text)

    def test_placed_in_a_page(self):
        first, last = page.marks("resize")
        old = f"# Title\n\n{first}\nold\n{last}\n\nMore.\n"
        new = f"# Title\n\n{first}\n\nnew\n\n{last}\n\nMore.\n"
        self.assertEqual(page.placed(old, "resize", "new\n"), new)
        self.assertEqual(page.placed(new, "resize", "new\n"), new)
        with self.assertRaisesRegex(ValueError, "no lines"):
            page.placed(old, "pmix", "new\n")

    def judged(self, measures, wanted=""):
        found = figures.verdicts(figures.summary(measures, measures[0]["peer"]), measures)
        return [(held, text.split(" s,")[0]) for held, text in found if wanted in text]

    def test_verdicts(self):
        self.assertEqual(
            self.judged(self.MEASURES),
            [
                (True, "1 MB, sleep, grow: elastic, pause, 1/2 of torchrun's: 2.00"),
                (True, "1 MB, sleep, grow: elastic, lost, 1/2 of torchrun's: 3.00"),
                (True, "1 MB, sleep, shrink: elastic, pause, 1/10 of torchrun's: 2.00"),
                (True, "1 MB, sleep, shrink: elastic, lost, 1/10 of torchrun's: 3.00"),
                (False, "1 MB, sleep, round 3: elastic, SIGTERM to free: 1.20"),
            ],
        )
        slower = [{**m, "pause": 4.0} if m["peer"] == "elastic" else m for m in self.MEASURES]
        self.assertEqual(
            [held for held, _ in self.judged(slower, "shrink: elastic, pause")], [False]
        )

    def test_who_leaves_in_live_mode_makes_its_step_first(self):
        leaving = {
            "round": 1,
            "peer": "live",
            "megabytes": 100,
            "step": "sleep",
            "normal_step": {2: 0.3, 4: 0.7},
        }
        for free, held in ((1.6, True), (1.8, False)):
            self.assertEqual(
                figures.verdicts([], [{**leaving, "sigterm_to_free": free}])[0][0], held
            )

    def test_verdicts_of_live_mode(self):
        live = [{**measure, "peer": "live", "megabytes": 100} for measure in self.MEASURES[:6]]
        self.assertEqual(
            self.judged(live, "live"),
            [
                (False, "100 MB, sleep, grow: live, pause beyond a step: 1.50"),
                (False, "100 MB, sleep, shrink: live, pause beyond a step: 1.50"),
            ],
        )
        with_torchrun = [
            *live,
            *(
                {**measure, "megabytes": 100}
                for measure in self.MEASURES
                if measure["peer"] == "torchrun"
            ),
        ]
        self.assertIn(
            (False, "100 MB, sleep, shrink: live, pause, 1/20 of torchrun's: 2.00"),
            self.judged(with_torchrun)[:2],
        )

    def test_sharded_models_are_compared_beyond_a_step(self):
        common = {"megabytes": 100, "step": "sleep", "change": "grow", "pause": 9.0, "lost": 9.0}
        peers = {"sharded-live": 0.31, "sharded-torchrun": 3.2, "sharded-torchrun-tuned": 3.0}
        measures = [{**common, "peer": peer, "beyond": value} for peer, value in peers.items()]
        self.assertEqual(
            self.judged(measures),
            [
                (
                    True,
                    "100 MB, sleep, grow: sharded-live, beyond, 1/10 of sharded-torchrun's: 0.31",
                ),
                (
                    False,
                    "100 MB, sleep, grow: sharded-live, beyond, 1/10 of sharded-torchrun-tuned's: 0.31",
                ),
            ],
        )


class Foresight(unittest.TestCase):
    def test_hops(self):
        self.assertEqual(foresight.hops((1, 0)), 0)
        self.assertEqual(foresight.hops((4, 0)), 0)
        self.assertAlmostEqual(foresight.hops((1, 1)), 1)
        self.assertAlmostEqual(foresight.hops((2, 1)), 2 / 3)

    def test_least(self):
        # What is left beside it, and one elsewhere: four pairs of ten are apart; two elsewhere
        # would be six.
        self.assertAlmostEqual(foresight.least_hops((1, 4), (3, 0), 2), 0.4)

    def test_as_slurm(self):
        self.assertEqual(foresight.as_slurm((4, 2, 3), 2), (0, 2, 0))
        self.assertEqual(foresight.as_slurm((4, 4, 0), 5), (4, 1, 0))
        self.assertEqual(foresight.as_slurm((1, 2, 2), 4), (0, 2, 2))

    def test_best_sum(self):
        # Who knows that two more come does not begin where one is left.
        sequence = [("rigid", 0, 3), ("base", 1, 1, 3), ("extension", 2, 1, 2), ("end", 0)]
        self.assertEqual(foresight.best_sum(sequence, 2, 4, 50), 0)
        # And whoever comes next, and needs six of the eight, cannot be on one leaf.
        sequence = [("base", 0, 6, 6)]
        self.assertAlmostEqual(foresight.best_sum(sequence, 2, 4, 50), 8 / 15)


class SpotTraces(unittest.TestCase):
    """Traces that the project makes itself."""

    def test_a_seed_is_a_trace(self):
        self.assertEqual(spot_traces.generate(1), spot_traces.generate(1))
        self.assertNotEqual(spot_traces.generate(1), spot_traces.generate(2))

    def test_all_or_none_most_of_the_time(self):
        for seed in range(5):
            data = spot_traces.generate(seed)["data"]
            self.assertEqual(len(data), 16 * 24 * 12)
            self.assertEqual((min(data), max(data)), (0, 16))
            clear = sum(nodes in (0, 16) for nodes in data) / len(data)
            self.assertGreater(clear, 0.8)
            self.assertTrue(0.2 < sum(data) / len(data) / 16 < 0.8)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ValueError, "there is no trace"):
                spot_traces.find(folder)
            paths = spot_traces.write(folder, 2, 1)
            self.assertEqual(spot_traces.find(folder), paths)
            self.assertEqual(len(spot_traces.starts(paths, 7, 1)), 7)

    def test_runs_are_spread(self):
        first = spot_traces.spread(1000, 10, 3)
        self.assertEqual({b - a for a, b in zip(first, first[1:])}, {100})
        self.assertTrue(first[0] >= 0 and first[-1] < 1000)


class Gpus(unittest.TestCase):
    """bench/gpu on a machine with too few GPUs ends with one line."""

    def said(self, listed):
        with tempfile.TemporaryDirectory() as directory:
            if listed is not None:
                fake = os.path.join(directory, "nvidia-smi")
                with open(fake, "w") as file:
                    file.write(f"#!/bin/sh\nprintf '{listed}'\n")
                os.chmod(fake, 0o755)
            done = subprocess.run(
                [sys.executable, os.path.join(sys.path[0], "gpu")],
                env={"PATH": directory},
                capture_output=True,
                text=True,
            )
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr

    def test_too_few(self):
        for listed in (None, ""):
            with self.subTest(listed):
                self.assertEqual(
                    self.said(listed),
                    "bench/gpu: no GPU here (nvidia-smi --list-gpus); --cpu tries the script "
                    "itself on the host\n",
                )


class Chaos(unittest.TestCase):
    """bench/chaos ends with one line before it starts anything."""

    def said(self, *options):
        done = subprocess.run(
            [sys.executable, os.path.join(sys.path[0], "chaos"), *options],
            capture_output=True,
            text=True,
        )
        self.assertEqual((done.returncode != 0, done.stdout), (True, ""))
        return done.stderr.splitlines()[-1]

    def test_peers_of_other_versions(self):
        for options in (["--only=torchft"], ["--newer", "--only=live"]):
            with self.subTest(options):
                self.assertIn("with --newer and only with it", self.said(*options))
        self.assertIn(
            "with --sharded and only with it", self.said("--newer", "--only=sharded-live")
        )

    def test_another_schedule(self):
        schedule = {"every": 30, "away": 10, "minutes": 4, "step": "sleep", "megabytes": 1}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"schedule": schedule, "measures": []}, file)
            file.flush()
            self.assertIn(
                f"--add={file.name}: measured with {schedule}",
                self.said("--newer", "--minutes=5", f"--add={file.name}"),
            )
            file.truncate(10)
            self.assertIn(
                f"--add={file.name}: ", self.said("--newer", "--minutes=4", f"--add={file.name}")
            )


class Requests(unittest.TestCase):
    """bench/serve --preempted: what hey prints."""

    GOOD = "Latency distribution:\n  95% in 0.1111 secs\n  99% in 0.125 secs\n\n"

    def test_all_good(self):
        said = self.GOOD + "Status code distribution:\n  [200]\t4000 responses\n"
        self.assertEqual(
            serve_preempted.figures_of(said), {"requests": 4000, "failed": 0, "p99": 125.0}
        )

    def test_some_failed(self):
        said = self.GOOD + "Status code distribution:\n  [200]\t3990 responses\n"
        said += (
            "  [502]\t6 responses\n\nError distribution:\n  [3]\tGet x: EOF\n  [1]\tGet x: [1]\n"
        )
        self.assertEqual(
            serve_preempted.figures_of(said), {"requests": 4000, "failed": 10, "p99": 125.0}
        )

    def test_nothing(self):
        with self.assertRaises(serve_preempted.BenchError):
            serve_preempted.figures_of("")


class Transfers(unittest.TestCase):
    """Of worlds of 4 and 2 ranks, whose state has 400 bytes."""

    STAY = (((0, 4), (0, 2)), ((1, 4), (1, 2)))
    COME = (((0, 2), (0, 4)), ((1, 2), (1, 4)), (None, (2, 4)), (None, (3, 4)))

    def test_what_a_change_has_to_move(self):
        for name, places, share in (
            ("nothing", [((0, 2), (0, 2)), ((1, 2), (1, 2))], 0),
            ("4 to 2", self.STAY, 0.75),
            ("2 to 4", self.COME, 0.75),
            ("the other way round", [((0, 2), (1, 2)), ((1, 2), (0, 2))], 1),
            ("all are new", [(None, (0, 2)), (None, (1, 2))], 1),
            ("alone", [((1, 4), (0, 1))], 0.75),
        ):
            with self.subTest(name):
                self.assertEqual(float(transfers.lacking(places)), share)

    def notes(self, places, time=10.0):
        yield json.dumps({"rank": 0, "time": 1.0, "probe": 0.5, "bytes": 300}) + "\n"
        for rank, (was, (_, size)) in enumerate(places):
            fields = {"rank": rank, "time": time, "size": size, "was": was}
            yield json.dumps({**fields, "received": 150, "grown": 7 * rank}) + "\n"

    def test_figures_of_a_change(self):
        self.assertEqual(
            transfers.change(self.notes(self.STAY), 9.0, 2),
            {"received": 300, "least": 300.0, "floor": 0.5, "grown": 7, "part": 200.0},
        )
        # Who was not there has no memory that could have grown.
        self.assertEqual(transfers.change(self.notes(self.COME), 9.0, 4)["grown"], 7)

    def test_worlds_that_are_not_the_changes(self):
        for name, lines, event in (
            ("before the event", self.notes(self.STAY), 11.0),
            ("a rank is missing", list(self.notes(self.STAY))[:-1], 9.0),
            ("a line that is being written", [*list(self.notes(self.STAY))[:-1], '{"rank"'], 9.0),
            ("not measured", list(self.notes(self.STAY))[1:], 9.0),
        ):
            with self.subTest(name):
                self.assertEqual(transfers.change(lines, event, 2), {})

    def test_promises(self):
        found = transfers.change(self.notes(self.STAY), 9.0, 2)
        record = {"megabytes": 100, "step": "sleep", "round": 1, "change": "shrink", **found}
        for beyond, grown, expected in (
            (1.05, 200 + 64e6, [True, True]),
            (1.06, 201 + 64e6, [False, False]),
        ):
            judged = transfers.verdicts([{**record, "beyond": beyond, "grown": grown}])
            self.assertEqual([held for held, _ in judged], expected)
        self.assertEqual(transfers.verdicts([{"change": "grow"}]), [])
        self.assertIn(
            "| 100 | shrink |", transfers.markdown([{**record, "beyond": 1.0, "between": 0.9}])
        )
        self.assertEqual(transfers.markdown([{"change": "grow"}]), "")


if __name__ == "__main__":
    tap.main()
