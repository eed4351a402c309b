#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# fio's gfapi engines (libgfapi, without FUSE) write a file at random offsets and verify every block, on a 2x2 volume.
# The volfile comes from a small GETSPEC server on the port that the library asks.
# Covers: xlators/protocol/server, xlators/storage/posix/data/write.c

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 2x2
volume_start v
volume_client_volfile v default >"$T/v.vol"
python3 "$kiln_lib/volfile-server.py" 127.0.0.1 24007 "$T/v.vol" 2>"$T/log/volfile-server.log" &
wait_for 120 "the volfile server to listen" port_answers 24007

verify() {
    fio --name=gfapi "--ioengine=$1" --volume=v --brick=127.0.0.1 "--filename=fio-$1-$2" --rw=randwrite "--bs=$2" \
        --size=16m --verify=crc32c --verify_fatal=1 --do_verify=1 --iodepth=8 --end_fsync=1 --verify_state_save=0 --output-format=json \
        >"$T/fio.json" 2>"$T/log/fio-$1-$2.log" || return
    python3 -c '
import json, sys
text = open(sys.argv[1]).read()
job = json.loads(text[text.index("{"):])["jobs"][0]
assert job["error"] == 0, job["error"]
for way in ("write", "read"):
    assert job[way]["io_bytes"] > 16 * 1000 * 1000, (way, job[way]["io_bytes"])
' "$T/fio.json"
}

# Each run takes ten seconds longer than its work, because glfs_fini() of the stock library waits for inodes in use.
t "gfapi verifies random writes in blocks of 4 KiB" verify gfapi 4k
t "gfapi verifies random writes in blocks of odd size" verify gfapi 37k
t "gfapi_async verifies random writes in blocks of 128 KiB" verify gfapi_async 128k
mount_volume v "$T/mnt"
is "$(stat -c %s "$T"/mnt/fio-gfapi-4k)" 16777216 "a mount sees the file that gfapi wrote"
t "fio verifies random writes through FUSE" fio --name=fuse --ioengine=psync --directory="$T/mnt" --rw=randwrite --bs=4k \
    --size=16m --verify=crc32c --verify_fatal=1 --do_verify=1 --end_fsync=1 --fallocate=none --verify_state_save=0
