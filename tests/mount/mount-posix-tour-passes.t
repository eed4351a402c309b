#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount mounts a volume of one brick, served by kilnd and by a stock brick. The POSIX tour passes without caches,
# so that each call reaches the brick, and unmounting leaves no process and no mount.
# Covers: xlators/mount/fuse, xlators/protocol/client

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

# Atime, mtime and ctime of the brick for all clients.
brick_times() {
    getfattr --absolute-names --only-values -n trusted.glusterfs.mdata "$1" | python3 -c '
import struct, sys
version, flags, *times = struct.unpack(">BQqqqqqq", sys.stdin.buffer.read())
ctime, mtime, atime = ("%d.%09d" % (times[i], times[i + 1]) for i in (0, 2, 4))
print(atime, mtime, ctime)'
}

for kind in kiln stock; do
    # A stock brick that is told of times does not move ctime when an xattr is set.
    options=(--acl)
    [[ $kind != stock ]] || options+=(--xattr-keeps-ctime)
    volume_new "v-$kind" 1x1
    volume_assign "v-$kind" "$kind"
    volume_start "v-$kind"
    mount_kiln "v-$kind" "$T/mnt-$kind" --acl --attribute-timeout=0 --entry-timeout=0
    include "$kind: the POSIX tour ends with status 0" python3 "$tests_dir/fops/posix_tour.py" "$T/mnt-$kind" "${options[@]}"
    echo text >"$T/mnt-$kind/stamped"
    is "$(brick_times "${volume_bricks[v-$kind]}/stamped")" "$(stat -c '%.X %.Y %.Z' "$T/mnt-$kind/stamped")" \
        "$kind: the brick has stored the mount's times, and shows them"
    t_here "$kind: the volume is unmounted" mount_end "$T/mnt-$kind"
    volume_stop "v-$kind"
done
