#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
"""Holds up one open(2) in a folder: hold_open.py FOLDER NAME HELD RELEASE

A process that opens FOLDER/NAME sleeps in the system call. The file HELD is made then, and the call goes on
when the file RELEASE is there. Prints "ready" when it watches. Needs fanotify(7)."""
import ctypes
import os
import struct
import sys
import time

FAN_CLASS_CONTENT, FAN_MARK_ADD, FAN_OPEN_PERM, FAN_EVENT_ON_CHILD, FAN_ALLOW = 4, 1, 0x10000, 0x08000000, 1
EVENT = struct.Struct("=IBBHQii")
libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result < 0:
        sys.exit("fanotify: " + os.strerror(ctypes.get_errno()))
    return result


def watch(folder):
    fan = checked(libc.fanotify_init(FAN_CLASS_CONTENT, os.O_RDONLY))
    checked(libc.fanotify_mark(fan, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN_PERM | FAN_EVENT_ON_CHILD), -100, folder.encode()))
    return fan


def main():
    folder, wanted, held, release = sys.argv[1:]
    fan = watch(folder)
    print("ready", flush=True)
    is_done = False
    while not is_done:
        buffer, at = os.read(fan, 4096), 0
        while at < len(buffer):
            size, _, _, _, _, fd, _ = EVENT.unpack_from(buffer, at)
            at += size
            is_wanted = os.path.basename(os.readlink("/proc/self/fd/%d" % fd)) == wanted
            if is_wanted:
                open(held, "w", encoding="ascii").close()
                while not os.path.exists(release):
                    time.sleep(0.01)
            os.write(fan, struct.pack("=iI", fd, FAN_ALLOW))
            os.close(fd)
            is_done |= is_wanted


main()
