# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Reads OpenMetrics text strictly: openmetrics.py FILE prints a family a line; openmetrics.py FILE NAME [LABEL=VALUE...] the values
of the samples that have these labels. Text that OpenMetrics does not allow ends the program with status 1."""
import re
import sys

SUFFIXES = {"counter": ["_total"], "gauge": [""], "info": ["_info"], "histogram": ["_bucket", "_count", "_sum"]}
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')


def fail(number, text):
    sys.exit("line %d: %s" % (number, text))


def labels_of(text, number):
    found, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        if not m or m.group(1) in found:
            fail(number, "labels: %s" % text)
        found[m.group(1)] = m.group(2)
        at = m.end()
    return found


def check_histogram(samples, number):
    """Edges rise, counts do not fall, +Inf is the count."""
    rows = {}
    for name, labels, value in samples:
        key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        rows.setdefault(key, []).append((name.rsplit("_", 1)[1], labels.get("le"), value))
    for row in rows.values():
        edges = [(float(le), value) for kind, le, value in row if kind == "bucket"]
        if edges != sorted(edges) or [v for _, v in edges] != sorted(v for _, v in edges) or edges[-1][0] != float("inf"):
            fail(number, "buckets: %s" % edges)
        if [value for kind, _, value in row if kind == "count"] != [edges[-1][1]]:
            fail(number, "the count is not the last bucket")


def read(path):
    families, samples, name, seen = {}, [], None, set()
    lines = open(path, encoding="utf-8").read().split("\n")
    if lines[-2:] != ["# EOF", ""] or lines.count("# EOF") != 1:
        sys.exit("the end is not '# EOF'")
    for number, line in enumerate(lines[:-2], 1):
        m = re.fullmatch(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (\w+)", line)
        if m:
            if name and families[name] == "histogram":
                check_histogram([s for s in samples if s[0].startswith(name)], number)
            name = m.group(1)
            if name in families or m.group(2) not in SUFFIXES:
                fail(number, line)
            families[name] = m.group(2)
            continue
        if re.fullmatch(r"# HELP %s .+" % re.escape(name or ""), line):
            continue
        m = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", line)
        if not m or not name or m.group(1) not in [name + s for s in SUFFIXES[families[name]]]:
            fail(number, line)
        if (m.group(1), m.group(2)) in seen:
            fail(number, "twice: " + line)
        seen.add((m.group(1), m.group(2)))
        value = float(m.group(3))
        if value < 0 and families[name] != "gauge":
            fail(number, line)
        samples.append((m.group(1), labels_of(m.group(2) or "", number), value))
    return families, samples


def main():
    families, samples = read(sys.argv[1])
    if len(sys.argv) == 2:
        print("\n".join(sorted("%s %s" % f for f in families.items())))
        return
    wanted = dict(arg.split("=", 1) for arg in sys.argv[3:])
    for name, labels, value in samples:
        if name == sys.argv[2] and all(labels.get(k) == v for k, v in wanted.items()):
            print("%.17g" % value)


main()
