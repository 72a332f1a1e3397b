# SPDX-License-Identifier: GPL-2.0-or-later
"""Where results go: tables in pages of doc/, files, and what they depend on."""

import json
import os
import platform
import time
from pathlib import Path


def marks(name):
    """The lines between which a page has the results of bench/NAME."""
    return f"<!-- bench/{name} -->", f"<!-- end of bench/{name} -->"


def placed(page, name, text):
    """The page with the text between its two lines for bench/NAME, in place of what is there.
    ValueError if it has no such lines.
    """
    first, last = marks(name)
    before, begin, rest = page.partition(first + "\n")
    _, end, after = rest.partition(last + "\n")
    if not begin or not end:
        raise ValueError(f"there are no lines {first} and {last}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def place(path, name, text):
    """The same with a file."""
    write(path, placed(Path(path).read_text(), name, text))


def write(path, text):
    """Replace a file, or leave it as it was."""
    temporary = Path(f"{path}.new")
    temporary.write_text(text)
    temporary.replace(path)


def check(args, name):
    """Before the measurement, not after it: ValueError or OSError if the page of --markdown has no
    lines for bench/NAME.
    """
    if args.markdown:
        placed(Path(args.markdown).read_text(), name, "")


def publish(args, name, text, figures):
    """The end of bench/NAME: a text for the terminal and the page of --markdown, figures for the
    file of --json.
    """
    print(text)
    if args.json:
        write(args.json, json.dumps(figures, indent=1) + "\n")
    if args.markdown:
        place(args.markdown, name, text)


def machine():
    """What figures depend on."""
    model = ""
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "when": time.strftime("%Y-%m-%d %H:%M"),
        "load": os.getloadavg()[0],
        "cpus": len(os.sched_getaffinity(0)),
        "cpu_model": model,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def heading(where):
    """The same in words."""
    return (
        f"{where['when']}; {where['cpus']} CPUs ({where['cpu_model']}), "
        f"load average {where['load']:.1f} at the start; {where['slurm']}"
    )
