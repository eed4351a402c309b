#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A 2x2 volume on XFS stores extended attributes up to the kernel's limit of 64 KiB, on files and directories.
# Covers: xlators/storage/posix/xattr/xattr-set.c, xlators/storage/posix/xattr/xattr-get.c

. "$(dirname "$0")/../lib/kiln.sh"

place_xfs "$T/disk"
volume_new v 2x2 "$T/disk"
volume_start v
mount_volume v "$T/m1"
mount_volume v "$T/m2"
touch "$T/m1/file"
mkdir "$T/m1/folder"

round_trip() {
    python3 - "$1" "$2" "$3" <<'EOF'
import os, random, sys
one, two, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
value = random.Random(size).randbytes(size)
os.setxattr(one, "user.big", value)
assert os.getxattr(two, "user.big") == value
assert "user.big" in os.listxattr(two)
os.removexattr(one, "user.big")
EOF
}
for size in 1 4096 32768 65535 65536; do
    t "the other mount reads an xattr of $size bytes of a file" round_trip "$T/m1/file" "$T/m2/file" "$size"
    t "the other mount reads an xattr of $size bytes of a folder" round_trip "$T/m1/folder" "$T/m2/folder" "$size"
done
several() {
    python3 - "$1" <<'EOF'
import os, sys
for i in range(16):
    os.setxattr(sys.argv[1], "user.k%d" % i, bytes([i]) * 16384)
for i in range(16):
    assert os.getxattr(sys.argv[1], "user.k%d" % i) == bytes([i]) * 16384
EOF
}
t "a file keeps sixteen xattrs of 16 KiB" several "$T/m1/file"
