#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two kiln-mounts use one volume, on a kilnd brick, on a stock brick and on a 2x2 volume. While one mount holds a
# lock the other mount waits, and gets the lock on release. A signal ends the wait with EINTR, and the interrupted
# call does not get the lock later. Closing the file releases the lock.
# Covers: xlators/mount/fuse/lock.c, xlators/protocol/client/held-locks.c, xlators/features/locks/posixlk.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

for kind in kiln stock kiln-2x2; do
    volume_new "v-$kind" "$([[ $kind == *-2x2 ]] && echo 2x2 || echo 1x1)"
    volume_assign "v-$kind" "${kind%-2x2}"
    volume_start "v-$kind"
    mount_kiln "v-$kind" "$T/one-$kind" --attribute-timeout=0 --entry-timeout=0
    mount_kiln "v-$kind" "$T/two-$kind" --attribute-timeout=0 --entry-timeout=0
    include "$kind: every lock is granted, refused or interrupted as expected" timeout 300 python3 "$tests_dir/mount/waiting_locks.py" \
        "$T/one-$kind" "$T/two-$kind" "$kind"
    t_here "$kind: the first mount is unmounted" mount_end "$T/one-$kind"
    t_here "$kind: the second mount is unmounted" mount_end "$T/two-$kind"
    volume_stop "v-$kind"
done
