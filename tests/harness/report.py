#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""report.py JSON COMMAND COMMIT ROW...: prints the rows of a run as a table, and writes all figures to JSON. ROW is a folder with the
file `figures` (lines `NAME VALUE`) and perhaps `pools`. Exit status 1 when a row had an error or did not come to its end."""
import datetime
import json
import os
import platform
import sys


def value_of(text):
    try:
        return int(text)
    except ValueError:
        return text


def read_row(folder):
    row = {"passes": {}, "error_texts": []}
    path = os.path.join(folder, "figures")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                name, _, value = line.rstrip("\n").partition(" ")
                if name == "error":
                    row["error_texts"].append(value)
                elif name.startswith("pass."):
                    _, one, what = name.split(".")
                    row["passes"].setdefault(one, {})[what] = value_of(value)
                else:
                    row[name] = value_of(value)
    pools = os.path.join(folder, "pools")
    if os.path.exists(pools):
        with open(pools, encoding="utf-8") as file:
            row["pools"] = file.read().splitlines()
    row.setdefault("errors", 1)
    for what in ("wall_ms", "brick_cpu_ms", "client_cpu_ms", "rpcs"):
        if row["passes"]:
            row[what] = sum(one.get(what, 0) for one in row["passes"].values())
    return row


def seconds(row, name):
    return f"{row[name] / 1000:.2f}" if name in row else "-"


def megabytes(row, name):
    return f"{row[name] / 1024:.1f}" if name in row else "-"


def plain(row, name):
    return str(row.get(name, "-"))


def rpcs_each(row):
    # The 3 passes of seed have the same names; a row is compared only with rows of the same workload.
    return f"{row['rpcs'] / (row['volumes'] * row['files']):.1f}" if "rpcs" in row else "-"


COLUMNS = (
    ("bricks", lambda r: plain(r, "brick")), ("client", lambda r: plain(r, "client")), ("mux", lambda r: plain(r, "mux")),
    ("online", lambda r: f"{r.get('online', 0)}/{r.get('bricks', '?')}"), ("processes", lambda r: plain(r, "processes")),
    ("wall s", lambda r: seconds(r, "wall_ms")), ("brick CPU s", lambda r: seconds(r, "brick_cpu_ms")),
    ("client CPU s", lambda r: seconds(r, "client_cpu_ms")), ("client RSS MB", lambda r: megabytes(r, "client_rss_kb")),
    ("client threads", lambda r: plain(r, "client_threads")),
    ("RSS idle MB", lambda r: megabytes(r, "rss_idle_kb")),
    ("RSS MB", lambda r: megabytes(r, "rss_kb")), ("threads", lambda r: plain(r, "threads")),
    ("descriptors", lambda r: plain(r, "fds")), ("RPCs/file", rpcs_each), ("checked", lambda r: plain(r, "checked")),
    ("errors", lambda r: plain(r, "errors")),
)


def table(rows):
    cells = [[name for name, _ in COLUMNS]] + [[show(row) for _, show in COLUMNS] for row in rows]
    used = [i for i in range(len(COLUMNS)) if any(line[i] != "-" for line in cells[1:])]
    widths = {i: max(len(line[i]) for line in cells) for i in used}
    for line in cells:
        yield "  ".join(line[i].rjust(widths[i]) for i in used)


def ratios(rows):
    """Each row beside stock bricks with stock's client and the same multiplexing."""
    for stock in rows:
        if (stock.get("brick"), stock.get("client")) != ("stock", "stock") or not stock.get("wall_ms"):
            continue
        for row in rows:
            if row is not stock and stock.get("mux") == row.get("mux") and row.get("wall_ms"):
                yield (f"{row['brick']} bricks, {row['client']} client / stock, multiplexing {row['mux']}: "
                       f"wall {row['wall_ms'] / stock['wall_ms']:.2f}, "
                       f"brick CPU {row['brick_cpu_ms'] / max(1, stock['brick_cpu_ms']):.2f}, "
                       f"client CPU {row['client_cpu_ms'] / max(1, stock['client_cpu_ms']):.2f}, "
                       f"RSS {row['rss_kb'] / stock['rss_kb']:.2f}")


def main(path, command, commit, *folders):
    rows = [read_row(folder) for folder in folders]
    for line in list(table(rows)) + list(ratios(rows)):
        print(line)
    for row in rows:
        for text in row["error_texts"]:
            print(f"{row.get('brick')} bricks, {row.get('client')} client, multiplexing {row.get('mux')}: {text}")
    run = {"command": command, "commit": commit, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
           "cores": os.cpu_count(), "kernel": platform.release(), "rows": rows}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(run, file, indent=1)
        file.write("\n")
    print(f"figures: {path}")
    return any(row["errors"] for row in rows)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
