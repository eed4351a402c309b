#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# top-picture.sh OUT.svg|OUT.png [SECONDS [COLUMNS ROWS]]: draws the screen of `kiln top` for the kilnd at $KILN_SOCKET after
# some seconds (5) in a terminal of that size (80 x 24). $KILN: the command.
set -euo pipefail

[[ ${1:-} != --help ]] || { sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
out=${1:?the name of the picture is missing; see --help}
seconds=${2:-5}
columns=${3:-80}
rows=${4:-24}
socket=$(mktemp -u /tmp/kiln-top.XXXXXX)
screen() {
    tmux -S "$socket" -f /dev/null "$@"
}
trap 'screen kill-server 2>/dev/null; rm -f "$socket" "$socket.svg"' EXIT

screen new-session -d -x "$columns" -y "$rows" "${KILN:-kiln} top"
screen set-option -g status off
sleep "$seconds"
screen capture-pane -p -e | python3 -c '
import html, re, sys

WIDTH, HEIGHT, SIZE = 8.43, 17, 14
COLUMNS, ROWS = int(sys.argv[1]), int(sys.argv[2])
lines = sys.stdin.read().split("\n")[:ROWS]
print("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">" % (COLUMNS * WIDTH + 24, ROWS * HEIGHT + 24))
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
print("</svg>")' "$columns" "$rows" >"$socket.svg"
if [[ $out == *.svg ]]; then
    cp "$socket.svg" "$out"
else
    rsvg-convert "$socket.svg" -o "$out"
fi
