#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""dirty_work.py: a file that is held open while its mount is taken away.

    dirty_work.py hold FILE       obeys commands on standard input, a line each, and answers each with a line: `ok`, or the errno
        write N     the next N blocks of 8 KiB at the file's end
        map N       the same through a shared map, without msync
        fsync | msync | close | unmap
    dirty_work.py look FILE N     FILE is the first N blocks
"""
import errno
import mmap
import os
import sys

BLOCK = 8192


def block(number):
    return b"%08d" % number * (BLOCK // 8)


class Held:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.count, self.memory = 0, None

    def write(self, count):
        for i in range(self.count, self.count + count):
            assert os.pwrite(self.fd, block(i), i * BLOCK) == BLOCK
        self.count += count

    def map(self, count):
        os.ftruncate(self.fd, (self.count + count) * BLOCK)
        self.memory = mmap.mmap(self.fd, (self.count + count) * BLOCK)
        for i in range(self.count, self.count + count):
            self.memory[i * BLOCK:(i + 1) * BLOCK] = block(i)
        self.count += count

    def msync(self):
        self.memory.flush()

    def unmap(self):
        self.memory.close()

    def fsync(self):
        os.fsync(self.fd)

    def close(self):
        os.close(self.fd)


def hold(path):
    held = Held(path)
    print("ok", flush=True)
    for line in sys.stdin:
        name, *numbers = line.split()
        try:
            getattr(held, name)(*map(int, numbers))
            print("ok", flush=True)
        except OSError as error:
            print(errno.errorcode[error.errno], flush=True)


def look(path, count):
    with open(path, "rb") as file:
        there = file.read()
    wrong = [i for i in range(count) if there[i * BLOCK:(i + 1) * BLOCK] != block(i)]
    if wrong or len(there) != count * BLOCK:
        sys.exit("%s: %d bytes, want %d; %d blocks are others, the first is %s" % (path, len(there), count * BLOCK, len(wrong), wrong[:1]))


if sys.argv[1] == "hold":
    hold(sys.argv[2])
else:
    look(sys.argv[2], int(sys.argv[3]))
