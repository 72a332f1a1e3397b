#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""selastic history and usage, --svg and --html: what Chromium shows is what the history and the
accounting say, whatever names are in them.
"""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import tap

SELASTIC = pathlib.Path(os.environ.get("top_builddir", "."), "cmd/selastic").absolute()
CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=1000",
]
PLOT = 780

# What every rectangle and text of the picture looks like in the end.
LOOK = """
<script>
const shown = [...document.querySelectorAll("svg rect, svg text")].map(one => ({
    kind: one.getAttribute("class"), data: {...one.dataset}, tag: one.tagName,
    text: one.tagName == "text" ? one.textContent : "", fill: getComputedStyle(one).fill,
    x: one.getBBox().x, y: one.getBBox().y, width: one.getBBox().width, height: one.getBBox().height}));
const out = document.createElement("pre");
out.id = "shown";
out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(shown))));
document.body.append(out);
</script>
"""

SACCT = """#!/usr/bin/python3
import json, pathlib, sys
(separator,) = [word[12:] for word in sys.argv if word.startswith("--delimiter=")]
for record in json.loads((pathlib.Path(__file__).parent / "records.json").read_text()):
    print(separator.join(record))
"""

HOSTILE = '"><script>document.title="taken"</script><x y=\'&amp;\x1b[31m\u202e'


def generation(number, time, kind, nodes, pools, **more):
    return {
        "generation": number,
        "time": time,
        "kind": kind,
        "size": len(nodes),
        "workers": 2 * len(nodes),
        "nodes": nodes,
        "pools": pools,
        "reason": f"reason {number}",
        **more,
    }


HISTORY = [
    generation(1, 1000.0, "start", ["n1", "n2"], ["", ""]),
    generation(2, 1100.0, "grow", ["n1", "n2", "n3", "n4"], ["", "", "spot", "other"]),
    {"generation": 1, "steps": 100},
    {"generation": 2, "pause": 20.0},
    generation(3, 1300.0, "fault", ["n1", "n2", "n4"], ["", "", "other"]),
    {"generation": 2, "steps": 540},
    {"generation": 3, "pause": 10.0},
    {"generation": 3, "until": 1400.0, "steps": 180},
]


class Pictures(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = pathlib.Path(directory.name)

    def draw(self, lines, *options):
        """The texts of the picture and of the page."""
        with open(self.place / "history.jsonl", "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        svg, html = self.place / "job.svg", self.place / "job.html"
        subprocess.run(
            [
                SELASTIC,
                "history",
                "7",
                "--state-dir",
                self.place,
                "--svg",
                svg,
                "--html",
                html,
                *options,
            ],
            check=True,
            timeout=280,
        )
        return svg.read_text("ascii"), html.read_text("ascii")

    def browse(self, page):
        """The document that Chromium makes of a page."""
        (self.place / "page.html").write_text(page)
        return subprocess.run(
            [
                CHROMIUM,
                *FLAGS,
                f"--user-data-dir={self.place / 'profile'}",
                "--dump-dom",
                (self.place / "page.html").as_uri(),
            ],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=280,
        ).stdout.decode()

    def shown(self, svg):
        document = self.browse(f"<!DOCTYPE html><body>{svg}{LOOK}")
        packed = re.search(r'<pre id="shown">([^<]*)</pre>', document).group(1)
        return json.loads(base64.b64decode(packed))

    def test_files_need_nothing_else(self):
        svg, html = self.draw(HISTORY)
        xml.etree.ElementTree.fromstring(svg)
        for text in svg, html:
            self.assertNotRegex(text, r"<script|<link|<img|@import|url\(|href|src=")
            self.assertEqual(re.findall(r"https?://[^\"]*", text), ["http://www.w3.org/2000/svg"])
        self.assertIn("default-src 'none'", html)

    def test_hostile_names_stay_text(self):
        lines = [
            generation(1, 1000.0, HOSTILE, [HOSTILE, "n2"], [HOSTILE, ""], reason=HOSTILE),
            {"generation": 1, "until": 1010},
        ]
        svg, html = self.draw(lines, "--title", HOSTILE)
        root = xml.etree.ElementTree.fromstring(svg)
        kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
        self.assertEqual(kinds, {"svg", "g", "rect", "text", "line", "title"})
        bars = [element for element in root.iter() if element.get("class") == "node"]
        self.assertEqual(
            bars[0].get("data-node"), HOSTILE.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd")
        )
        self.assertNotIn("<script", html)

    def test_errors_are_one_line_and_no_file(self):
        (self.place / "history.jsonl").write_text("{}\n")
        run = [SELASTIC, "history", "7", "--state-dir", self.place]
        nothing = subprocess.run(
            [*run, "--svg", self.place / "a.svg"], capture_output=True, text=True, timeout=280
        )
        self.assertEqual(nothing.returncode, 1)
        self.assertIn("job 7 has no generation that could be drawn", nothing.stderr)
        self.draw(HISTORY)
        lost = subprocess.run(
            [*run, "--svg", self.place / "no" / "a.svg"],
            capture_output=True,
            text=True,
            timeout=280,
        )
        self.assertEqual((lost.returncode, lost.stdout), (1, ""))
        self.assertFalse((self.place / "a.svg").exists())

    @unittest.skipUnless(CHROMIUM, "Chromium (Debian's package chromium) is not installed")
    def test_what_chromium_shows_is_the_history(self):
        svg, _ = self.draw(HISTORY)
        shown = self.shown(svg)
        scale = PLOT / 400.0
        rows = {one["text"]: one["y"] for one in shown if re.fullmatch(r"n\d", one["text"])}
        self.assertEqual(sorted(rows, key=rows.get), ["n1", "n2", "n3", "n4"])
        left = min(one["x"] for one in shown if one["kind"] == "node")

        bars = [one for one in shown if one["kind"] == "node"]
        expected = {
            (g["generation"], node, pool or "base")
            for g in HISTORY
            if "nodes" in g
            for node, pool in zip(g["nodes"], g["pools"])
        }
        self.assertEqual(
            {
                (int(one["data"]["generation"]), one["data"]["node"], one["data"]["pool"])
                for one in bars
            },
            expected,
        )
        self.assertEqual(len(bars), len(expected))
        spans = {1: (0, 100), 2: (100, 300), 3: (300, 400)}
        colours = {}
        for one in bars:
            begin, end = spans[int(one["data"]["generation"])]
            self.assertAlmostEqual(one["x"] - left, begin * scale, delta=0.2)
            self.assertAlmostEqual(one["width"], (end - begin) * scale, delta=1)
            self.assertAlmostEqual(one["y"], rows[one["data"]["node"]], delta=8)
            colours.setdefault(one["data"]["pool"], set()).add(one["fill"])
        self.assertEqual([len(fills) for fills in colours.values()], [1, 1, 1])
        self.assertEqual(len(set.union(*colours.values())), 3)

        pauses = sorted(
            (round(one["x"] - left), round(one["width"])) for one in shown if one["kind"] == "pause"
        )
        self.assertEqual(pauses, [(195, 39)] * 4 + [(585, round(19.5))] * 3)
        self.assertEqual([one["text"] for one in shown if one["kind"] == "size"], ["2", "4", "3"])
        self.assertEqual(len({one["fill"] for one in shown if one["kind"] == "world"}), 3)
        self.assertEqual(
            [one["text"] for one in shown if one["kind"] == "change"],
            ["reason 1", "reason 2", "reason 3"],
        )
        rates = {int(one["data"]["generation"]): one for one in shown if one["kind"] == "rate"}
        self.assertEqual([float(rates[n]["data"]["rate"]) for n in (1, 2, 3)], [1, 3, 2])
        tallest = rates[2]["height"]
        self.assertAlmostEqual(rates[1]["height"], tallest / 3, delta=0.05)
        self.assertAlmostEqual(rates[3]["height"], tallest * 2 / 3, delta=0.05)
        (summary,) = [one["text"] for one in shown if one["kind"] == "summary"]
        self.assertEqual(
            summary,
            "6:40 in all; it trained for 92.5 % of the time; 2 changes, paused for 30.0 s in all",
        )

    @unittest.skipUnless(CHROMIUM, "Chromium (Debian's package chromium) is not installed")
    def test_many_nodes_are_a_chart_of_the_size(self):
        names = [f"n{i}" for i in range(100)]
        svg, _ = self.draw(
            [
                generation(1, 0.5, "start", names[:25], [""] * 25),
                generation(2, 100.5, "grow", names, [""] * 25 + ["spot"] * 75),
                {"generation": 2, "until": 200.5},
            ]
        )
        heights = {
            (int(one["data"]["generation"]), one["data"]["pool"]): one["height"]
            for one in self.shown(svg)
            if one["kind"] == "nodes"
        }
        self.assertEqual(heights, {(1, "base"): 50, (2, "base"): 50, (2, "spot"): 150})

    @unittest.skipUnless(CHROMIUM, "Chromium (Debian's package chromium) is not installed")
    def test_the_page_has_each_change_and_runs_nothing(self):
        lines = [
            generation(n, 1000.0 + 10 * n, "grow", ["n1"], [""], reason=f"{n} {HOSTILE}")
            for n in range(1, 31)
        ]
        _, html = self.draw(lines, "--title", HOSTILE)
        document = self.browse(html)
        self.assertEqual(len(re.findall(r"<tr>", document)), 31)
        self.assertNotIn("<script", document)
        title = re.search(r"<title>([^<]*)</title>", document).group(1)
        self.assertTrue(
            title.startswith('"&gt;&lt;script&gt;document.title="taken"&lt;/script&gt;')
        )

    @unittest.skipUnless(CHROMIUM, "Chromium (Debian's package chromium) is not installed")
    def test_what_chromium_shows_is_the_accounting(self):
        begin, tres = "1700000000", "cpu=8"
        records = [  # as USAGE_FIELDS of lib/usage.h
            [
                "12",
                "ada",
                "lab",
                "batch",
                "COMPLETED",
                begin,
                "3600",
                "2",
                tres,
                "elastic=2:8",
                "",
                "x",
            ],
            [
                *["14", "ada", "lab", "spot", "PREEMPTED", "1700000600", "1800", "4", tres],
                *["elastic-extension-of=12.0 pool=spot", "elastic-extension-of=12.0", "x+"],
            ],
            [
                "20",
                "eve",
                "lab",
                "batch",
                "FAILED",
                begin,
                "1200",
                "1",
                tres,
                "elastic=1:2",
                "",
                HOSTILE,
            ],
        ]
        (self.place / "records.json").write_text(json.dumps(records))
        sacct = self.place / "sacct"
        sacct.write_text(SACCT)
        sacct.chmod(0o755)
        (self.place / "elastic.conf").write_text("")
        environment = {
            **os.environ,
            "PATH": f"{self.place}:{os.environ['PATH']}",
            "ELASTIC_CONF": str(self.place / "elastic.conf"),
        }
        svg = self.place / "usage.svg"
        subprocess.run(
            [SELASTIC, "usage", "--all", "--until=now", "--svg", svg],
            check=True,
            timeout=280,
            env=environment,
        )
        shown = self.shown(svg.read_text("ascii"))
        bars = {}
        for one in shown:
            if one["kind"] == "nodes":
                bars.setdefault((one["data"]["job"], one["data"]["pool"]), []).append(one)
        left = min(one["x"] for one in bars["0", "base"])
        found = {
            key: [
                (
                    int(one["data"]["nodes"]),
                    round((one["x"] - left) * 3600 / PLOT / 600),
                    round(one["width"] * 3600 / PLOT / 600),
                )
                for one in sorted(those, key=lambda one: one["x"])
            ]
            for key, those in bars.items()
        }
        # Nodes, and when from and how long, in ten minutes.
        self.assertEqual(
            found,
            {
                ("12", "base"): [(2, 0, 1), (2, 1, 3), (2, 4, 2)],
                ("12", "spot"): [(4, 1, 3)],
                ("20", "base"): [(1, 0, 2)],
                ("0", "base"): [(3, 0, 1), (3, 1, 1), (2, 2, 2), (2, 4, 2)],
                ("0", "spot"): [(4, 1, 1), (4, 2, 2)],
            },
        )
        # The height is by nodes, and each pool has one colour.
        of_12 = {key[1]: those for key, those in bars.items() if key[0] == "12"}
        self.assertAlmostEqual(
            of_12["spot"][0]["height"], 2 * of_12["base"][0]["height"], delta=0.1
        )
        for pool in "base", "spot":
            fills = {one["fill"] for key, those in bars.items() if key[1] == pool for one in those}
            self.assertEqual(len(fills), 1)
        (summary,) = [one["text"] for one in shown if one["kind"] == "summary"]
        self.assertEqual(summary, "2 elastic jobs, 4.33 node hours")
        names = [one["text"] for one in shown if one["kind"] == "job"]
        self.assertEqual(names[0], "12 x")
        self.assertTrue(names[1].startswith('20 "><script>'))


if __name__ == "__main__":
    tap.main()
