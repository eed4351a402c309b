#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Debian's qemu-img, qemu-io, fio and Samba open volumes with Kiln's libgfapi: images are made, converted, compared, checked and
# verified, on volumes of kilnd's bricks and of stock bricks; files of a Samba share are put, renamed, read and removed. Errors of a volume that does not exist, and of a server that does not answer, reach
# the program.
# Covers: api/volume.c, api/request.c, api/io.c, api/file.c, api/names.c, api/gfapi.map

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/gfapi.sh"

head -c 8388608 /dev/urandom >"$T/raw"
mkdir -p "$T/b"

images_work() {
    local url=gluster://$1/v where=$2
    t "qemu-img makes an image on $where" with_kiln qemu-img create -f qcow2 "$url/a.qcow2" 64M
    t "qemu-img converts to a raw image" with_kiln qemu-img convert -f raw -O raw "$T/raw" "$url/raw"
    is "$(for file in "$T"/b*/*/raw; do cmp -s "$file" "$T/raw" && echo equal; done)" $'equal\nequal' "both replicas are equal to the raw image"
    t "qemu-img finds both equal" with_kiln qemu-img compare -f raw -F raw "$T/raw" "$url/raw"
    t "qemu-img converts to qcow2" with_kiln qemu-img convert -f raw -O qcow2 "$T/raw" "$url/b.qcow2"
    t "qemu-io writes, discards, writes zeroes, flushes and reads" with_kiln qemu-io -c 'write -P 0x5a 0 1M' \
        -c 'discard 64k 64k' -c 'write -z 128k 64k' -c 'aio_write -P 0x3c 2M 512k' -c 'aio_write -P 0x3d 3M 512k' -c aio_flush \
        -c 'read -P 0x5a 0 64k' -c 'read -P 0 128k 64k' -c 'read -P 0x3c 2M 512k' -c 'read -P 0x3d 3M 512k' -c flush "$url/b.qcow2"
    t "the image is sound" with_kiln qemu-img check "$url/b.qcow2"
}

verifies() {
    local engine=$3
    t "fio's engine $engine verifies what it has written on $2" with_kiln fio --name=v --ioengine="$engine" --volume=v \
        --brick="$1" --filename="f-$engine" --size=4M --bs=16k --rw=randrw --iodepth=8 --fsync=32 --verify=crc32c \
        --verify_fatal=1 --verify_state_save=0 --thread --output="$T/fio-$engine"
    is "$(grep -c 'err= 0' "$T/fio-$engine")" 1 "fio's engine $engine reports no error on $2"
}

if [[ $BRICKD == kiln ]]; then
    front_start
    kiln volume create v replica 2 "$T"/b/{1,2,3,4}
    kiln volume start v
    images_work localhost "kilnd's bricks"
    verifies localhost "kilnd's bricks" gfapi_async
    smb_start kiln v localhost
    t "smbd stores, renames and reads a file of the volume" smb \
        "mkdir d; put $T/raw d/a; rename d/a d/b; get d/b $T/back; setmode d/b +r; setmode d/b -r"
    is "$(cmp "$T/raw" "$T/back" && for file in "$T"/b/*/d/b; do cmp -s "$file" "$T/raw" && echo equal; done)" $'equal\nequal' \
        "the file and both replicas are equal to it"
    t "... and removes file and folder" smb "del d/b; rmdir d"
    smb_stop
    is "$(ls -d "$T"/b/*/d 2>/dev/null) $(grep -c ' E \[' "$T/log/smbd-gfapi-kiln-v.log")" " 0" "smbd has removed the folder on all bricks, without an error in the log"
    out=$(with_kiln qemu-img info gluster://localhost/none/a.qcow2 2>&1) || status=$?
    is "${status:-0} $(grep -c 'volume none' <<<"$out")" "1 2" "the error for a missing volume names the volume"
    front_stop
fi
out=$(with_kiln qemu-img info gluster://localhost:1/v/a.qcow2 2>&1) || status=$?
is "${status:-0} $(grep -c 'no glusterd or kilnd answers at localhost, port 1' <<<"$out")" "1 1" \
    "a server that does not answer is an error, which names it"

glusterd_start
rm -r "$T/b"
gl_create v 2x2 >/dev/null
gl volume start v >/dev/null
wait_for 240 "all bricks to be online" bricks_all_online v 4
images_work "$glusterd_host" "stock bricks"
verifies "$glusterd_host" "stock bricks" gfapi
