#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""top_screen.py COLUMNS TEXT KEYS [TEXT KEYS]... -- COMMAND: runs COMMAND in a terminal of COLUMNS x 24. Waits for each TEXT
(a regular expression, each line of the screen a line), prints the screen, and types KEYS. Exit status: that of COMMAND;
1 if a TEXT did not come in 120 seconds or a line was longer than the screen."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROWS = 24
TERMINAL = "kiln-test|only moves and clears,\n\tcols#80, lines#24,\n\tclear=\\E[H\\E[2J, cup=\\E[%i%p1%d;%p2%dH,\n"
SEQUENCE = re.compile(rb"\x1b\[(\d*)(?:;(\d+))?([HJ])|\x1b[^\[]|\x1b\[[^@-~]*[@-~]")


class Screen:
    def __init__(self, columns):
        self.columns, self.rest = columns, b""
        self.clear()

    def clear(self):
        self.lines = [[" "] * self.columns for _ in range(ROWS)]
        self.row = self.column = 0

    def put(self, char):
        if char in "\r\n":
            self.row, self.column = (self.row, 0) if char == "\r" else (self.row + 1, self.column)
            return
        if self.column >= self.columns or self.row >= ROWS:
            sys.exit(f"{char!r} is written at {self.row},{self.column}, outside of the screen:\n{self.text()}")
        self.lines[self.row][self.column] = char
        self.column += 1

    def sequence(self, match):
        if match[3] == b"J":
            self.clear()
        elif match[3] == b"H":
            self.row, self.column = int(match[1] or 1) - 1, int(match[2] or 1) - 1
        else:
            sys.exit(f"the terminal has no {match[0]!r}")

    def feed(self, data):
        data, at = self.rest + data, 0
        while at < len(data):
            match = SEQUENCE.match(data, at)
            if match:
                self.sequence(match)
                at = match.end()
            elif data[at] == 0x1b:
                break  # the end has not come yet
            else:
                self.put(chr(data[at]))
                at += 1
        self.rest = data[at:]

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)


def see(master, screen, text):
    end = time.monotonic() + 120
    while not re.search(text, screen.text(), re.M):
        if time.monotonic() > end:
            sys.exit(f"no {text!r} on the screen:\n{screen.text()}")
        if select.select([master], [], [], 1)[0]:
            try:
                screen.feed(os.read(master, 65536))
            except OSError:
                sys.exit(f"the command ended before {text!r}; the screen:\n{screen.text()}")


def drain(master, child):
    while child.poll() is None:
        if select.select([master], [], [], 0.1)[0]:
            try:
                os.read(master, 65536)
            except OSError:  # the child has closed the terminal
                break
    return child.wait(60)


def main():
    split = sys.argv.index("--")
    columns, steps, command = int(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tic", "-o", folder, "-"], input=TERMINAL.encode(), check=True)
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                 env=environment | {"TERM": "kiln-test", "TERMINFO": folder})
        os.close(slave)
        screen = Screen(columns)
        try:
            for text, keys in zip(steps[::2], steps[1::2]):
                see(master, screen, text)
                print(f"{screen.text()}\n== {keys!r}")
                os.write(master, keys.encode())
            return drain(master, child)
        finally:
            child.kill()


sys.exit(main())
