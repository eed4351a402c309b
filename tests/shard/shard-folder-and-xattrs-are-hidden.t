#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Users of a volume with blocks do not see /.shard: listings leave it out, and all operations on it fail with EPERM. They can
# neither read nor change the xattrs of blocks. Files keep the block size of their creation, files from before the option have no
# blocks, and seeks find data and holes.
# Covers: xlators/features/shard/shard.c, xlators/features/shard/names.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
mount_graph=whole
volume_new v 2x1
volume_start v
a=$T/a

mount_kiln v "$a"
head -c 9000000 /dev/urandom >"$T/data"
cp "$T/data" "$a/plain"
mount_end "$a"
volfile_shard=4MB
mount_kiln v "$a"
cp "$T/data" "$a/small"
mount_end "$a"
volfile_shard=8MB
mount_kiln v "$a"
cp "$T/data" "$a/large"
is "$(find ${volume_bricks[v]} -path '*/.shard/*' -type f | wc -l)" 3 "files of 9 MB have no, two and one further blocks"
for name in plain small large; do
    t "$name: the file is whole" cmp "$T/data" "$a/$name"
    echo more >>"$a/$name"
    is "$(stat -c %s "$a/$name")" 9000005 "$name: an append makes the file longer"
done
is "$(find ${volume_bricks[v]} -name plain -size +8M -printf x)" x "a file from before the option stays one file"

is "$(ls -A "$a" | tr '\n' ' ')" "large plain small " "a listing does not show the folder of blocks"
t "a lookup of the folder fails with EPERM" fails_with "Operation not permitted" stat "$a/.shard"
t "so does its creation" fails_with "Operation not permitted" mkdir "$a/.shard"
t "so does its removal" fails_with "Operation not permitted" rmdir "$a/.shard"
t "so does a rename to its name" fails_with "Operation not permitted" mv -T "$a/plain" "$a/.shard"
mkdir "$a/d"
t "another folder may have the name" mkdir "$a/d/.shard"
is "$(ls -A "$a/d")" .shard "the other folder of that name is listed"

key=trusted.glusterfs.shard.file-size
is "$(getfattr -d -m trusted.glusterfs.shard -e hex "$a/small" 2>/dev/null)" "" "a list of xattrs does not have those of blocks"
t "the size's xattr cannot be read" fails_with "No such attribute" getfattr -n $key "$a/small"
t "the size's xattr cannot be set" fails_with "Operation not permitted" setfattr -n $key -v 0x00 "$a/small"
t "the size's xattr cannot be removed" fails_with "Operation not permitted" setfattr -x $key "$a/small"
is "$(stat -c %s "$a/small")" 9000005 "the size is as before"

mkdir "$a/many"
for i in $(seq 20); do
    truncate -s $((i * 5000000)) "$a/many/$i"
done
mount_end "$a"
mount_kiln v "$a"
is "$(ls -l "$a/many" | awk 'NR > 1 {print $9 * 5000000 - $5}' | sort -u)" 0 "a first listing by a new mount has the sizes of whole files"

python3 - "$a/holes" <<'EOS' >"$T/seeks"
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
block = 8 << 20
os.pwrite(fd, b"x" * 4096, 0)
os.pwrite(fd, b"x" * 4096, 3 * block)
os.ftruncate(fd, 5 * block)
os.fsync(fd)
print(os.lseek(fd, 0, os.SEEK_HOLE), os.lseek(fd, 4096, os.SEEK_DATA) // block, os.lseek(fd, 3 * block, os.SEEK_HOLE) - 3 * block)
try:
    os.lseek(fd, 4 * block, os.SEEK_DATA)
except OSError as e:
    print(e.errno)
print(os.fstat(fd).st_blocks)
EOS
is "$(tr '\n' ' ' <"$T/seeks")" "4096 3 4096 6 16 " "seeks find the data and the holes of a file"
t "an allocation of more blocks than a call may make is refused" fails_with "File too large" \
    python3 -c 'import os, sys; os.posix_fallocate(os.open(sys.argv[1], os.O_RDWR), 0, 1 << 60)' "$a/holes"
chmod 4755 "$a/large"
chown 1000 "$a/large"
is "$(stat -c '%s %a' "$a/large")" "9000005 755" "a change of mode and owner keeps the size"

# A mount of a subdirectory uses the folder of the volume.
mkdir "$a/sub"
mount_kiln v "$T/sub" --subdir-mount=/sub
cp "$T/data" "$T/sub/f"
t "a mount of a subdirectory writes into blocks" cmp "$T/data" "$a/sub/f"
t "the name of the folder is free there" mkdir "$T/sub/.shard"
is "$(ls -A "$T/sub" | tr '\n' ' ')" ".shard f " "a folder of that name in the subdirectory is listed"
