#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""cli_shape.py [each=TAG,...] [drop=REGEX] [sort=REGEX] <OUTPUT-OF-GLUSTER: prints the output's shape, to compare two bricks.

Text: numbers, sizes, times, ids and addresses are masked, runs of blanks become a blank, rules of dashes a dash. Successive rows of one
shape become one row, except the rows of bricks. XML: the tree of elements, where successive children of one shape become one child,
except the tags in each= (default: node, brick). Lines of text and tags that match drop= are left out. Successive masked lines
of text that match sort= are sorted, each shape once.
"""
import itertools
import re
import sys
import xml.etree.ElementTree as xml

MASKS = [
    (r"/\S*/bricks/twin-[ab]-", "/bricks/VOL-"),
    (r"twin-[ab]", "VOL"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?( \+0000)?", "TIME"),
    (r"-?\d+(\.\d+)?(:\d+)*(b\+?|KB|MB|GB|TB|Bytes)?(?=[\s,%)]|$)", "#"),
    (r"\d+\.\d+\.\d+\.\d+", "ADDRESS"),
    (r"\b(ns|us|ms|s|seconds|secs?)\b", "UNIT"),
    (r"[-+=*]{3,}", "-"),
    (r"\s+", " "),
]


def masked(line):
    for pattern, mask in MASKS:
        line = re.sub(pattern, mask, line)
    return line.strip()


def text_shape(text, drop):
    last = None
    for line in map(masked, text.splitlines()):
        if not line or drop and re.search(drop, line):
            continue
        if line != last or line.startswith("Brick "):
            yield line
        last = line


def xml_shape(element, each, drop):
    tag = re.sub(r"\d+$", "#", element.tag)
    lines = ["<%s>" % tag]
    last = None
    for child in element:
        if drop and re.search(drop, child.tag):
            continue
        shape = xml_shape(child, each, drop)
        if shape != last or child.tag in each:
            lines += ["  " + line for line in shape]
        last = shape
    return lines


def main():
    args = dict(word.split("=", 1) for word in sys.argv[1:])
    each, drop = args.get("each", "node,brick").split(","), args.get("drop")
    text = sys.stdin.read()
    if text.startswith("<?xml"):
        lines = xml_shape(xml.fromstring(text.encode()), each, drop)
    else:
        lines = text_shape(text, drop)
    for is_sorted, group in itertools.groupby(lines, lambda line: "sort" in args and bool(re.search(args["sort"], line))):
        print("\n".join(sorted(set(group)) if is_sorted else group))


main()
