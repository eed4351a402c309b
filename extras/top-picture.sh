#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# top-picture.sh OUT.png [SECONDS]: what `kiln top` shows of the kilnd at $KILN_SOCKET after some seconds (5), as a picture of a
# terminal of 100 x 24. $KILN: the command.
set -euo pipefail

out=$1
seconds=${2:-5}
socket=$(mktemp -u /tmp/kiln-top.XXXXXX)
screen() {
    tmux -S "$socket" -f /dev/null "$@"
}
trap 'screen kill-server 2>/dev/null; rm -f "$socket" "$socket.svg"' EXIT

screen new-session -d -x 100 -y 24 "${KILN:-kiln} top"
screen set-option -g status off
sleep "$seconds"
screen capture-pane -p -e | python3 -c '
import html, re, sys

WIDTH, HEIGHT, SIZE = 8.43, 17, 14
lines = sys.stdin.read().split("\n")[:24]
print("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">" % (100 * WIDTH + 24, 24 * HEIGHT + 24))
print("<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1d1f21\"/>")
for row, line in enumerate(lines):
    y, column, is_reversed = 12 + (row + 1) * HEIGHT - 4, 0, False
    for piece in re.split("(\x1b\\[[0-9;]*m)", line):
        if piece.startswith("\x1b"):
            codes = piece[2:-1].split(";")
            is_reversed = "7" in codes or (is_reversed and not {"0", "27", ""} & set(codes))
            continue
        x = 12 + column * WIDTH
        if is_reversed and piece:
            print("<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#c5c8c6\"/>"
                  % (x, y - 13, len(piece) * WIDTH, HEIGHT))
        if piece.strip():
            print("<text x=\"%.1f\" y=\"%d\" font-family=\"DejaVu Sans Mono\" font-size=\"%d\" fill=\"%s\" xml:space=\"preserve\">%s</text>"
                  % (x, y, SIZE, "#1d1f21" if is_reversed else "#c5c8c6", html.escape(piece)))
        column += len(piece)
print("</svg>")' >"$socket.svg"
rsvg-convert "$socket.svg" -o "$out"
