# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""The picture of a result of tests/bench/pool: an SVG, and a PNG made of it by rsvg-convert."""
import math
import os
import statistics
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

COLOUR = {"glibc": "#8c8c8c", "jemalloc": "#c44e52", "mimalloc": "#2e8b57", "tcmalloc": "#4c72b0", "upstream": "#8172b2",
          "seed": "#ccb974", "off": "#64b5cd", "pool": "#e07b00", "inline": "#7a3e00"}
SPARE = ["#d957a8", "#00a0a0", "#5a5a00"]
WIDTH, LEFT, RIGHT, STEP = 1150, 310, 880, 26


class Svg:
    def __init__(self):
        self.parts = []

    def text(self, x, y, s, size=12, anchor="start", colour="#222", weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" '
                          f'font-weight="{weight}">{escape(s)}</text>')

    def line(self, x1, y1, x2, y2, colour="#ddd", width=1.0):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>')

    def dot(self, x, y, colour, r=5.0):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}" stroke="white" stroke-width="0.8"/>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" fill="{colour}"/>')

    def whole(self, height):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}" '
                f'font-family="DejaVu Sans, sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n'
                + "\n".join(self.parts) + "\n</svg>\n")


def colours(results):
    more = [w for w in results["general"] if w not in COLOUR]
    return {**COLOUR, **dict(zip(more, SPARE))}


def merged_rows(results):
    """The main table's rows, each median the median over the runs."""
    out = []
    for i, first in enumerate(results["runs"][0]["rows"]):
        same = [run["rows"][i] for run in results["runs"]]
        ns = {w: statistics.median(r["ns"][w]["median"] for r in same) for w in first["ns"]}
        out.append({"what": first["what"], "ns": ns, "regime": "/".join(sorted({r["regime"] for r in same} - {""}))})
    return out


def musts(results):
    """Row -> the ratio that mem_get and mem_put must reach against the best general allocator."""
    return {e["what"]: e["levels"][0] for e in results["summary"] if e["who"] == "pool" and e["unit"] == "x" and e["levels"]}


def legend(svg, y, names, colour):
    x = LEFT
    for name in names:
        svg.dot(x + 5, y - 4, colour[name])
        svg.text(x + 14, y, name)
        x += 30 + 8 * len(name)
    x = LEFT
    svg.line(x + 6, y + 8, x + 6, y + 20, "#d00", 2.5)
    svg.text(x + 14, y + 18, "must: no general allocator (the first four) left of this mark")


def times(svg, y, results):
    rows, colour, must = merged_rows(results), colours(results), musts(results)
    names = [w for w in colour if w in rows[0]["ns"]]
    low, high = math.log2(0.5), math.log2(64)

    def at(ratio):
        return LEFT + (RIGHT - LEFT) * (min(max(math.log2(ratio), low), high) - low) / (high - low)

    svg.text(10, y, "Time of a get and put, mem_get and mem_put = 1 (logarithmic; further right is slower)", 15, weight="bold")
    legend(svg, y + 24, names, colour)
    top = y + 66
    bottom = top + STEP * len(rows)
    for power in range(-1, 7):
        x = at(2.0 ** power)
        svg.line(x, top, x, bottom, "#e07b00" if power == 0 else "#e4e4e4", 2 if power == 0 else 1)
        svg.text(x, top - 4, "1/2" if power < 0 else f"{2 ** power}", 11, "middle", "#666")
    svg.text(RIGHT + 20, top - 4, "pool", 11, colour="#666")
    svg.text(RIGHT + 85, top - 4, "best general, times slower", 11, colour="#666")
    for i, row in enumerate(rows):
        mid = top + STEP * (i + 0.5)
        ns = row["ns"]
        svg.line(LEFT, mid, RIGHT, mid, "#f0f0f0")
        svg.text(LEFT - 10, mid + 4, row["what"] + (f" ({row['regime']})" if row["regime"] else ""), 12, "end")
        if must.get(row["what"]):
            x = at(must[row["what"]])
            svg.line(x, mid - 9, x, mid + 9, "#d00", 2.5)
        for name in names:
            svg.dot(at(ns[name] / ns["pool"]), mid, colour[name])
        best = min(results["general"], key=lambda w: ns[w])
        svg.text(RIGHT + 20, mid + 4, f"{ns['pool']:.1f} ns")
        svg.text(RIGHT + 85, mid + 4, f"{best} {ns[best]:.1f} ns, {ns[best] / ns['pool']:.2f}x")
    return bottom + 40


def idle(svg, y, results):
    rows = results["runs"][-1].get("idle")
    if not rows:
        return y
    colour = colours(results)
    svg.text(10, y, "Resident MB after 400,000 objects of 256 B were freed: at once, after N, after 2N (N = 1 s)", 15, weight="bold")
    y += 14
    most = max(max(r["mb"]) for r in rows)
    for r in rows:
        svg.text(LEFT - 10, y + 18, f"{r['threads']} threads, {r['way']}", 12, "end")
        for k in range(3):
            value = r["mb"][k + 1]
            x = LEFT + k * 200
            svg.bar(x, y + 8, 140 * value / most, 13, colour.get(r["way"], "#888"))
            svg.text(x + 140 * value / most + 5, y + 19, f"{value:.1f}", 11)
        y += 18
    return y + 45


def extras(svg, y, results):
    """The added cost of get0 and of the accountings, in ns, on one scale."""
    bars = []
    run = results["runs"][-1]
    for r in run.get("get0") or []:
        bars += [(f"get0, {r['size']} B, {who}", r["extra"][who], 4.0 if r["size"] <= 512 else None) for who in ("pool", "inline")]
    for r in run.get("accounting") or []:
        bars += [(f"{way}, {r['what']}", r["extra"][way], 0.6 if way == "owner" and r["judged"] else None)
                 for way in ("pool", "owner", "exact") if r["extra"].get(way) is not None]
    if not bars:
        return y
    svg.text(10, y, "What zeroing (get0) and accounting add to a get and put, ns (red: at most)", 15, weight="bold")
    y += 14
    most = min(max(max(b[1] for b in bars), 1), 16)
    unit = (RIGHT - LEFT) / most
    for what, value, limit in bars:
        svg.text(LEFT - 10, y + 18, what, 12, "end")
        svg.bar(LEFT, y + 8, unit * min(max(value, 0), most), 13, COLOUR["inline"] if what.endswith("inline") else COLOUR["pool"])
        svg.text(LEFT + unit * min(max(value, 0), most) + 5, y + 19, f"{value:.2f}", 11)
        if limit and limit <= most:
            svg.line(LEFT + unit * limit, y + 5, LEFT + unit * limit, y + 24, "#d00", 2.5)
        y += 18
    return y + 45


def draw(results):
    svg = Svg()
    svg.text(10, 26, "Kiln's memory pool and the general allocators", 20, weight="bold")
    svg.text(10, 46, f"{results['date']}, {results['machine']}; {results['placement']}; medians of {results['repeat']}, {len(results['runs'])} run(s)", 11, colour="#666")
    y = 80
    if results["runs"][0]["rows"]:
        y = times(svg, y, results)
    y = extras(svg, idle(svg, y, results), results)
    return svg.whole(y)


def write(results, svg_path, png_path):
    text = draw(results)
    if svg_path:
        with open(svg_path, "w") as f:
            f.write(text)
    if png_path:
        with tempfile.NamedTemporaryFile("w", suffix=".svg") as f:
            f.write(text)
            f.flush()
            if subprocess.run(["rsvg-convert", "-o", os.path.abspath(png_path), f.name]).returncode:
                sys.exit("pool: rsvg-convert failed")
