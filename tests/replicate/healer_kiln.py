# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Starts kiln-heal, as kilnd --state does, for the replica or disperse sets of a volfile of the stock self-heal daemon.

    healer_kiln.py KILN-HEAL VOLUME VOLFILE LOG

The program heals until SIGTERM or SIGKILL ends this script: kiln-heal ends with its channel (heal/channel.h).
"""
import json
import re
import subprocess
import sys


def sets_of(text):
    """Returns a volfile for each cluster/replicate or cluster/disperse layer: the layers below it, then the layer itself."""
    layers = {}
    for block in re.findall(r"^volume .*?^end-volume$", text, re.M | re.S):
        layers[block.split()[1]] = block
    for block in layers.values():
        if re.search(r"type cluster/(replicate|disperse)$", block, re.M):
            below = re.search(r"^\s*subvolumes (.*)$", block, re.M).group(1).split()
            yield "\n\n".join([layers[name] for name in below] + [block]) + "\n"


def main():
    program, volume, volfile, log = sys.argv[1:]
    with open(volfile, encoding="ascii") as f:
        sets = list(sets_of(f.read()))
    if not sets:
        sys.exit(f"{volfile} has no cluster/replicate or cluster/disperse")
    child = subprocess.Popen([program, f"--log-file={log}", "--sandbox=off"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    child.stdin.write(json.dumps({"do": "volume", "name": volume, "heals": True, "sets": sets}) + "\n")
    child.stdin.flush()
    for line in child.stdout:
        print(line, end="", flush=True)
    sys.exit(f"kiln-heal has ended: {child.wait()}")


main()
