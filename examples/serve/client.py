# SPDX-License-Identifier: GPL-2.0-or-later
"""Asks a service which digits some images show, and counts how often it is right.

    client.py http://HOST:PORT MODEL [--task digit|parity|large] [--token-file FILE] [--requests N]

It tries again after status 503, as Retry-After says: a model may be on its way.
"""

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROWS = 12
TRIES = 30
TASKS = {
    "digit": lambda label: label,
    "parity": lambda label: label % 2,
    "large": lambda label: int(label > 4),
}


def held_out():
    """(pixels from 0 to 1, digit) of the images that train.py has held out."""
    sys.path.append(str(Path(__file__).resolve().parent.parent / "digits"))
    import images

    pixels, digits = (part[: images.HELD_OUT].tolist() for part in images.read())
    return list(zip(pixels, digits, strict=True))


def ask(url, model, rows, token=None, tries=TRIES):
    """The labels of these rows, and the version of the model that says so."""
    data = [value for row in rows for value in row]
    image = {"name": "image", "datatype": "FP32", "shape": [len(rows), len(rows[0])], "data": data}
    request = urllib.request.Request(
        f"{url}/v2/models/{model}/infer",
        json.dumps({"inputs": [image]}).encode(),
        {"Content-Type": "application/json"},
    )
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    for left in reversed(range(tries)):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                said = json.load(answer)
                return said["outputs"][0]["data"], said["model_version"]
        except urllib.error.HTTPError as error:
            if error.code != 503 or left == 0:
                raise
            time.sleep(float(error.headers.get("Retry-After", "1")))
        except urllib.error.URLError as error:  # the router does not listen yet
            if left == 0:
                raise SystemExit(f"{url}: {error.reason}") from None
            time.sleep(1)
    raise TimeoutError(url)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--task", choices=TASKS, default="digit")
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--requests", type=int, default=30)
    args = parser.parse_args()
    token = args.token_file.read_text().split()[0] if args.token_file else None
    samples = held_out()
    right = asked = 0
    versions = set()
    for number in range(args.requests):
        some = [samples[(number * ROWS + i) % len(samples)] for i in range(ROWS)]
        labels, version = ask(args.url, args.model, [pixels for pixels, _ in some], token)
        versions.add(version)
        asked += len(some)
        right += sum(
            label == TASKS[args.task](digit) for label, (_, digit) in zip(labels, some, strict=True)
        )
    print(f"{args.model} {' '.join(sorted(versions))}: {right} of {asked} right")


if __name__ == "__main__":
    main()
