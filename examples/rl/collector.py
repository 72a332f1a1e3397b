# SPDX-License-Identifier: GPL-2.0-or-later
"""Plays with the newest weights, and hands in what has happened, a fragment at a time.

When it is told to end (SIGTERM), it finishes its fragment and hands it in.
"""

import argparse
import signal
import time

import numpy
from cartpole import CartPoles, Coordinator, Over, forward
from slurm_elastic import roles

DISCOUNT, SMOOTHING = 0.99, 0.95


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--carts", type=int, default=8)
    parser.add_argument("--length", type=int, default=64, help="of a fragment, in steps")
    parser.add_argument(
        "--step-time", type=float, default=0.005, metavar="SECONDS", help="that a step takes"
    )
    return parser.parse_args()


def advantages(rewards, over, values, last):
    """Generalized advantage estimation of one fragment; arrays of [step, cart]; last: [cart]."""
    result = numpy.zeros_like(rewards)
    ahead, next_value = numpy.zeros_like(last), last
    for step in reversed(range(len(rewards))):
        goes_on = ~over[step]
        delta = rewards[step] + DISCOUNT * next_value * goes_on - values[step]
        ahead = result[step] = delta + DISCOUNT * SMOOTHING * ahead * goes_on
        next_value = values[step]
    return result


def play(carts, weights, length, step_time, generator):
    """One fragment: what the learner needs, and the lengths of the episodes that have ended."""
    shape = length, len(carts.age)
    seen = numpy.zeros((*shape, carts.state.shape[1]))
    actions, over = numpy.zeros(shape, int), numpy.zeros(shape, bool)
    rewards, log_chances, values = numpy.ones(shape), numpy.zeros(shape), numpy.zeros(shape)
    lengths = []
    for step in range(length):
        seen[step] = carts.state
        scores = forward(weights, "policy", carts.state)
        scores -= scores.max(axis=1, keepdims=True)
        chances = numpy.exp(scores) / numpy.exp(scores).sum(axis=1, keepdims=True)
        actions[step] = generator.random(shape[1]) < chances[:, 1]
        log_chances[step] = numpy.log(chances[numpy.arange(shape[1]), actions[step]])
        values[step] = forward(weights, "value", carts.state)[:, 0]
        fell, full, ended = carts.step(actions[step])
        over[step] = fell | full
        # A full episode could go on: what would have come is worth about as much as what it had.
        rewards[step] += DISCOUNT * values[step] * full
        lengths.extend(ended)
        time.sleep(step_time)
    last = forward(weights, "value", carts.state)[:, 0]
    gained = advantages(rewards, over, values, last)
    return {
        "seen": seen.reshape(-1, seen.shape[2]),
        "actions": actions.ravel(),
        "log_chances": log_chances.ravel(),
        "advantages": gained.ravel(),
        "targets": (gained + values).ravel(),
        "lengths": numpy.array(lengths, int),
    }


def main():
    args = parse_arguments()
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    me = roles.me()
    generator = numpy.random.default_rng([me.index, me.start])
    carts = CartPoles(args.carts, generator)
    coordinator = Coordinator()
    weights, version, number = None, -1, 0
    try:
        while not told:
            status, newer = coordinator.ask(f"/weights?after={version}")
            if status == 200:
                weights, version = newer, int(newer.pop("version"))
            if weights is None:
                time.sleep(0.2)
                continue
            fragment = play(carts, weights, args.length, args.step_time, generator)
            path = f"/fragment?from={me.replica}&start={me.start}&number={number}"
            while coordinator.ask(path, fragment)[0] != 200:
                if told:  # the coordinator is gone
                    raise Over
                time.sleep(0.2)
            number += 1
    except Over:
        pass
    print(f"{number} fragments", flush=True)


if __name__ == "__main__":
    main()
