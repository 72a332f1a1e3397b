#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks on the language and the links of Markdown pages.

Usage: prose.py lines|sentences|links|files|functions|mean FILE...

  lines      lines of more than 100 columns, but for tables, URLs and what bench/ writes
  sentences  sentences of more than 40 words
  links      relative links to files or headings that are not there
  files      files of this tree that a page names as code, and tests that it names without their
             directory, if they are not there. Run it at the top
  functions  functions that a page names as code, `like_this()`, if no source of this tree has them.
             `foo_` stands for any name. Run it at the top
  mean       the mean number of words of a sentence, for each file and for all; tables excepted

Prints FILE:LINE: and what is wrong. Code between fences has lines, but no sentences or links.
"""

import functools
import re
import sys
from pathlib import Path

COLUMNS_MAX = 100
WORDS_MAX = 40

# A sentence ends at a full stop behind which something begins that can begin a sentence.
END = re.compile(r"(?<=[.!?])[)\"”*]*\s+(?=[A-Za-z0-9`\"“(\[…*_-])")
# What ends with a full stop and no sentence.
SHORT = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|No)\.")
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
SOURCE = re.compile(
    r"`((?:agent|bench|client|cmd|common|examples|flush|lib|plugins|pmix|scripts|spank|tests)"
    r"/[\w./-]+\.(?:c|h|py|sh|bats|bash))`"
)
FUNCTION = re.compile(r"`(?!foo_)([a-z_][a-z0-9_]*)\(\)`")
SOURCES = ("*.[ch]", "*.py", "*.sh", "*.bash", "scripts/**/*-elastic")
TEST = re.compile(r"`(\w+\.bats|test_\w+\.py)`")
ITEM = re.compile(r"\s*([-*+]|\d+\.)\s+")


def visible(text):
    """Yields (number, line, kind) for the lines of a page; kind is "code", "table", "prose" or
    "written" (by a program)."""
    fence = written = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
            yield number, line, "code"
        elif fence:
            yield number, line, "code"
        elif re.match(r"<!-- (bench/|table of )", line):
            written = True
            yield number, line, "written"
        elif re.match(r"<!-- end of |<!-- .*: end -->", line):
            written = False
            yield number, line, "written"
        elif written:
            yield number, line, "written"
        elif line.lstrip().startswith("|"):
            yield number, line, "table"
        else:
            yield number, line, "prose"


def long_lines(path, text):
    for number, line, kind in visible(text):
        if kind in ("code", "prose") and len(line) > COLUMNS_MAX and "://" not in line:
            yield f"{path}:{number}: {len(line)} columns"


def blocks(text, tables=True):
    """Yields (number, text) of what is read as one: a paragraph, an item, a cell, a heading."""
    first, words = 0, []

    def done():
        nonlocal words
        if words:
            yield first, " ".join(words)
        words = []

    for number, line, kind in visible(text):
        stripped = line.strip()
        if kind in ("code", "written") or not stripped or stripped.startswith("<!--"):
            yield from done()
        elif kind == "table":
            yield from done()
            if tables and not re.fullmatch(r"[|\s:-]+", stripped):
                for cell in re.split(r"(?<!\\)\|", stripped.strip("|")):
                    yield number, cell.strip()
        elif stripped.startswith("#"):
            yield from done()
            yield number, stripped.lstrip("# ")
        else:
            if ITEM.match(line):
                yield from done()
                line = ITEM.sub("", line, count=1)
            if not words:
                first = number
            words.append(line.strip().lstrip("> "))
    yield from done()


def sentences(text, tables=True):
    """Yields (number, sentence). A link counts as its text, and what is set as code as one word."""
    for number, block in blocks(text, tables):
        block = LINK.sub(r"\1", block)
        block = re.sub(r"(`+).*?\1", "CODE", block)
        block = SHORT.sub(r"\1", block)
        for sentence in END.split(block):
            if sentence.strip():
                yield number, sentence.strip()


def words_of(sentence):
    return len(re.findall(r"[^\W_][\w'’./-]*", sentence))


def long_sentences(path, text):
    for number, sentence in sentences(text):
        if words_of(sentence) > WORDS_MAX:
            yield f"{path}:{number}: {words_of(sentence)} words: {sentence[:70]}…"


def slug(heading):
    heading = LINK.sub(r"\1", heading.lstrip("# ").strip())
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(text):
    return {
        slug(line) for _, line, kind in visible(text) if kind == "prose" and line.startswith("#")
    }


def broken_links(path, text):
    for number, line, kind in visible(text):
        if kind == "code":
            continue
        for _, target in LINK.findall(re.sub(r"(`+).*?\1", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, part = target.partition("#")
            file = (path.parent / name) if name else path
            if not file.exists():
                yield f"{path}:{number}: {target}: no such file"
            elif part and file.suffix == ".md" and part not in headings(file.read_text()):
                yield f"{path}:{number}: {target}: no such heading"


def missing_files(path, text):
    for number, line, kind in visible(text):
        if kind in ("code", "written"):
            continue
        for name in SOURCE.findall(line):
            if not re.search("[A-Z]{3}", name) and not Path(name).exists():
                yield f"{path}:{number}: {name}: no such file"
        for name in TEST.findall(line):
            if not any(Path("tests").glob(f"*/{name}")):
                yield f"{path}:{number}: {name}: no such test"


@functools.cache
def functions():
    """Names before a parenthesis in the sources."""
    found = set()
    for pattern in SOURCES:
        for file in Path().glob(pattern if "/" in pattern else f"[!.b]*/**/{pattern}"):
            found.update(re.findall(r"\b([a-z_][a-z0-9_]*)\(", file.read_text()))
    return found


def missing_functions(path, text):
    for number, line, kind in visible(text):
        if kind != "code":
            for name in FUNCTION.findall(line):
                if name not in functions():
                    yield f"{path}:{number}: {name}(): no such function"


def mean(paths):
    """Prints the words of sentences. What has less than three words is a label, and is left out."""
    every = []
    for path in paths:
        lengths = [
            n for n in (words_of(s) for _, s in sentences(path.read_text(), tables=False)) if n >= 3
        ]
        every += lengths
        if lengths:
            print(
                f"{sum(lengths) / len(lengths):5.1f} mean, {max(lengths):3} longest, {len(lengths):4} sentences  {path}"
            )
    if every:
        over = sum(n > 25 for n in every) / len(every)
        print(
            f"{sum(every) / len(every):5.1f} mean, {max(every):3} longest, {len(every):4} sentences in all, "
            f"{over:.1%} of more than 25 words"
        )


CHECKS = {
    "lines": long_lines,
    "sentences": long_sentences,
    "links": broken_links,
    "files": missing_files,
    "functions": missing_functions,
}


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in (*CHECKS, "mean"):
        sys.exit(__doc__)
    paths = [Path(name) for name in arguments[1:]]
    if arguments[0] == "mean":
        mean(paths)
        return
    for path in paths:
        for complaint in CHECKS[arguments[0]](path, path.read_text()):
            print(complaint)


if __name__ == "__main__":
    main(sys.argv[1:])
