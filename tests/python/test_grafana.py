#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The dashboard against Grafana's own schema: the classes that Grafana makes of it for Python."""

import copy
import json
import os
import pathlib
import unittest

import tap

try:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard, RowPanel
    from grafana_foundation_sdk.models.prometheus import Dataquery
except ImportError:
    Dashboard = None

FILE = pathlib.Path(os.environ.get("top_srcdir", "."), "etc/grafana/slurm-elastic.json")


def missing(ours, kept, path=""):
    """What is in the first, and not in the second, by its path."""
    if isinstance(ours, dict):
        kept = kept if isinstance(kept, dict) else {}
        for key, value in ours.items():
            yield from missing(value, kept.get(key), f"{path}/{key}")
        if not ours and kept != ours:
            yield path
    elif isinstance(ours, list):
        kept = kept if isinstance(kept, list) else []
        for i, value in enumerate(ours):
            yield from missing(value, kept[i] if i < len(kept) else None, f"{path}/{i}")
    elif ours != kept:
        yield path


@unittest.skipUnless(Dashboard, "grafana-foundation-sdk (PyPI) is not installed")
class Schema(unittest.TestCase):
    def setUp(self):
        register_default_plugins()
        self.ours = json.loads(FILE.read_text())

    def lost(self, ours):
        """What Grafana does not know: its classes read it, and write what they know."""
        return list(
            missing(ours, json.loads(json.dumps(Dashboard.from_json(ours), cls=JSONEncoder)))
        )

    def test_grafana_knows_all_that_the_dashboard_says(self):
        self.assertEqual(self.lost(self.ours), [])

    def test_panels_ask_prometheus(self):
        panels = Dashboard.from_json(self.ours).panels
        queries = [q for p in panels if not isinstance(p, RowPanel) for q in p.targets or []]
        self.assertGreater(len(queries), 10)
        for query in queries:
            self.assertIsInstance(query, Dataquery)

    def test_what_grafana_does_not_know_is_found(self):
        for at in ([], ["templating"], ["panels", 0], ["panels", 1], ["panels", 1, "gridPos"]):
            wrong = copy.deepcopy(self.ours)
            place = wrong
            for step in at:
                place = place[step]
            place["colour"] = "red"
            self.assertEqual(self.lost(wrong), ["".join(f"/{step}" for step in [*at, "colour"])])


if __name__ == "__main__":
    tap.main()
