# SPDX-License-Identifier: GPL-2.0-or-later
"""Asks a service all the time, and says whether each answer was allowed when it was given.

storm.py ask URL FILE KEY...   until SIGTERM: GET URL/KEY, each key 20 times a second. FILE gets
                               "BEGIN END KEY STATUS VERSION" of each
storm.py check FILE TIMELINE   TIMELINE has lines "TIME KEY ALLOWED...": from then on answers for
                               that key are these versions, or these statuses, and no others
"""

import http.client
import signal
import sys
import threading
import time
from urllib.parse import urlsplit

PAUSE = 0.05
ended = threading.Event()


def ask_once(connection, key):
    connection.request("GET", f"/{key}")
    answer = connection.getresponse()
    return answer.status, answer.read().decode().strip()


def ask(url, key, lines):
    where = urlsplit(url)
    while not ended.wait(PAUSE):
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=300)
        begin = time.time()
        try:
            status, version = ask_once(connection, key)
        except (OSError, http.client.HTTPException) as error:
            status, version = 0, type(error).__name__
        connection.close()
        lines.append(
            f"{begin:.6f} {time.time():.6f} {key} {status} {version.replace(' ', '_') or '-'}"
        )


def ask_all(url, path, keys):
    lines = []
    threads = [threading.Thread(target=ask, args=(url, key, lines)) for key in keys]
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(path, "w", encoding="ascii") as file:
        file.write("\n".join(sorted(lines)) + "\n")


def read_timeline(path):
    timeline = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            at, key, *allowed = line.split()
            timeline.setdefault(key, []).append((float(at), set(allowed)))
    return timeline


def allowed(steps, begin, end):
    """All that is allowed at some time from begin to end."""
    some = set()
    for i, (at, what) in enumerate(steps):
        until = steps[i + 1][0] if i + 1 < len(steps) else float("inf")
        if at <= end and until >= begin:
            some |= what
    return some


def check(path, timeline):
    steps = read_timeline(timeline)
    count, wrong, seen = 0, [], {}
    with open(path, encoding="ascii") as file:
        for line in file:
            begin, end, key, status, version = line.split()
            said = version if status == "200" else status
            count += 1
            seen.setdefault(key, {}).setdefault(said, 0)
            seen[key][said] += 1
            if said not in allowed(steps.get(key, []), float(begin), float(end)):
                wrong.append(line.strip())
    print(f"{count} answers, {len(wrong)} that were not allowed")
    for key, answers in sorted(seen.items()):
        print(key, " ".join(f"{said}:{number}" for said, number in sorted(answers.items())))
    print("\n".join(wrong[:20]))
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        ask_all(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        sys.exit(check(sys.argv[2], sys.argv[3]))
