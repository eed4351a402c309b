#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A program of libgfapi hears of another client's changes on a volume with features.cache-invalidation: by asking, by a function that
# it registers after it has asked, and by asking again after it has unregistered the function. No question takes the events of the
# function. Without the option of the volume there is no event.
# Covers: api/upcall.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/gfapi.sh"

upcalls() { # VOLUME [off]
    with_kiln timeout 400 python3 "$(dirname "$0")/upcalls_work.py" localhost "$1" "$T/mnt-$1" "$T/log/upcalls-$1.log" "${@:2}" 2>&1
}
mkdir -p "$T/b" "$T/mnt-on" "$T/mnt-off"
front_start
for v in on off; do
    kiln volume create $v replica 2 "$T/b/$v"{1,2} >/dev/null
    kiln volume set $v features.cache-invalidation $v >/dev/null
    kiln volume start $v >/dev/null
    "$KILN_MOUNT" -s localhost --volfile-id $v -l "$T/log/mount-$v.log" "$T/mnt-$v"
done
is "$(upcalls on)" "init 0
the change is visible True
a question is answered by an event True
registered 1
the function is called True
no question takes the function's events True
unregistered 1
a question is answered again True True
fini 0" "events reach questions, then the registered function, then questions"
is "$(upcalls off off)" "init 0
the change is visible True
a question is answered by an event False" "without cache invalidation there is no event"
umount "$T/mnt-on" "$T/mnt-off"
