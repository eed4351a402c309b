#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A program writes files of a dispersed volume through kiln-mount, and another one through libgfapi: with O_SYNC, with O_DSYNC, and
# files that it closes. Then the mount, or the program, is killed at once. The files have all bytes, on a plain volume and on one with
# files in blocks: no size is lost with the client, of a file or of a block.
# Covers: xlators/cluster/disperse/all.c, xlators/cluster/disperse/write.c, xlators/features/shard/data.c, api/file.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$tests_dir/lib/gfapi.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

# Writes three files of 9 MiB and kills the mount; the descriptors of two of them are open.
write_and_kill() {
    python3 - "$1" "${mount_pid[$1]}" <<'EOS'
import os, signal, sys
MB = 1 << 20
for name, flags in ("sync", os.O_SYNC), ("dsync", os.O_DSYNC), ("closed", 0):
    fd = os.open(sys.argv[1] + "/mount-" + name, os.O_CREAT | os.O_RDWR | flags)
    for i in range(9):
        os.pwrite(fd, bytes([65 + i]) * MB, i * MB)
    if not flags:
        os.close(fd)
os.kill(int(sys.argv[2]), signal.SIGKILL)
os._exit(0) # a close would wait for the mount
EOS
}

# The same by libgfapi; the program kills itself.
write_by_library() {
    with_kiln python3 - "$1" "$T/log/gfapi.log" <<'EOS'
import ctypes, os, signal, sys
MB = 1 << 20
api = ctypes.CDLL("libgfapi.so.0", use_errno=True)
api.glfs_new.restype = api.glfs_creat.restype = ctypes.c_void_p
api.glfs_pwrite.restype = ctypes.c_long
fs = ctypes.c_void_p(api.glfs_new(b"v"))
api.glfs_set_volfile(fs, sys.argv[1].encode())
api.glfs_set_logging(fs, sys.argv[2].encode(), 7)
assert api.glfs_init(fs) == 0
for name, flags in (b"sync", os.O_SYNC), (b"dsync", os.O_DSYNC), (b"closed", 0):
    fd = ctypes.c_void_p(api.glfs_creat(fs, b"/library-" + name, os.O_RDWR | flags, 0o644))
    for i in range(9):
        assert api.glfs_pwrite(fd, bytes([65 + i]) * MB, ctypes.c_size_t(MB), ctypes.c_long(i * MB), 0, None, None) == MB
    assert flags or api.glfs_close(fd) == 0
os.kill(os.getpid(), signal.SIGKILL)
EOS
}

python3 -c 'import sys; [sys.stdout.write(chr(65 + i) * (1 << 20)) for i in range(9)]' >"$T/wanted"
for volfile_shard in "" 4MB; do
    vol=v$volfile_shard
    volume_new "$vol" 1x2+1
    volume_start "$vol"
    mount_kiln "$vol" "$T/mnt"
    write_and_kill "$T/mnt"
    umount -l "$T/mnt"
    unset "mount_pid[$T/mnt]"
    write_by_library "$T/$vol-mnt.kiln.vol" 2>/dev/null || true
    mount_kiln "$vol" "$T/again"
    for name in {mount,library}-{sync,dsync,closed}; do
        t "$name of ${volfile_shard:-no} blocks is whole" cmp "$T/again/$name" "$T/wanted"
    done
    mount_end "$T/again"
    volume_stop "$vol"
done
