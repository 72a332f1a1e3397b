#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""selastic history --svg and --html: what Chromium shows is what the history says, whatever names
are in it.
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
            timeout=20,
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
            timeout=50,
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
            [*run, "--svg", self.place / "a.svg"], capture_output=True, text=True, timeout=20
        )
        self.assertEqual(nothing.returncode, 1)
        self.assertIn("job 7 has no generation that could be drawn", nothing.stderr)
        self.draw(HISTORY)
        lost = subprocess.run(
            [*run, "--svg", self.place / "no" / "a.svg"], capture_output=True, text=True, timeout=20
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


if __name__ == "__main__":
    tap.main()
