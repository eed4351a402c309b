#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# qemu-img, qemu-io, fio, Samba and NFS-Ganesha work through GlusterFS's library and through Kiln's, on stock bricks and on kilnd's.
# A test of smbtorture that passes through GlusterFS's library passes through Kiln's. The script prints a table of all results.
# KILN_SMB_SUITES names other suites of smbtorture, KILN_GFAPI_BRICKS (kilnd stock) the bricks.
# Covers: api/volume.c, api/request.c, api/path.c, api/names.c, api/attr.c, api/io.c, api/file.c, api/xattr.c, api/dir.c, api/object.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/gfapi.sh"

suites="smb2.connect smb2.read smb2.rw smb2.dir smb2.rename smb2.mkdir smb2.lock smb2.create base.unlink base.rw1 base.rename
    base.attr base.openattr base.chkpath raw.read raw.write raw.rename raw.unlink"
head -c 8388608 /dev/urandom >"$T/raw"
mkdir -p "$T/b"
programs=("qemu-img convert, compare" "qemu-io verify" "fio gfapi verify" "fio gfapi_async verify" "smbclient" "smbtorture, tests passed"
    "NFS-Ganesha, nfs-cp, nfs-ls, nfs-cat")
has_ganesha || skip_all "no NFS-Ganesha, or no nfs-ls, nfs-cp and nfs-cat"
head -c 3000 "$T/raw" >"$T/small" # the write of Debian's nfs-cp fails for 6,000 bytes, also with GlusterFS's library
declare -A result

images_are_equal() {
    "with_$1" qemu-img convert -f raw -O qcow2 "$T/raw" "$2/a.qcow2" && "with_$1" qemu-img compare -f raw -F qcow2 "$T/raw" "$2/a.qcow2" &&
        "with_$1" qemu-img check "$2/a.qcow2"
}

image_verifies() {
    "with_$1" qemu-img create -f qcow2 "$2/b.qcow2" 64M && "with_$1" qemu-io -c 'write -P 0x5a 0 1M' -c 'write -z 128k 64k' \
        -c 'aio_write -P 0x3c 2M 512k' -c aio_flush -c 'read -P 0x5a 0 64k' -c 'read -P 0 128k 64k' -c 'read -P 0x3c 2M 512k' "$2/b.qcow2"
}

fio_verifies() {
    "with_$1" fio --name=v --ioengine="$4" --volume="$3" --brick="$2" --filename="f-$4" --size=4M --bs=16k --rw=randrw --iodepth=8 \
        --fsync=32 --verify=crc32c --verify_fatal=1 --verify_state_save=0 --thread --output="$T/fio" && grep -q 'err= 0' "$T/fio"
}

share_works() {
    smb "mkdir d; put $T/raw d/a; rename d/a d/b; get d/b $T/back; del d/b; rmdir d" && cmp "$T/raw" "$T/back" && rm "$T/back"
}

export_works() {
    local status=0
    ganesha_start "$1" "$1" "$2" && nfs-cp "$T/small" "$(nfs_url small)" && nfs-cat "$(nfs_url small)" | cmp - "$T/small" &&
        [[ $(nfs-ls "$(nfs_url '')" | awk '$NF == "small" { print $5 }') == 3000 ]] || status=1
    ganesha_stop && return "$status"
}

# Prints the names of the tests that pass.
torture() {
    local suite
    for suite in ${KILN_SMB_SUITES:-$suites}; do
        timeout 120 smbtorture -s "$smb_conf" -p "$smb_port" -U root%secret //localhost/v "$suite" 2>&1 | tee -a "$T/log/torture-$1.out" |
            sed -n "s/^success: /$suite /p" || true
    done
}

# try PROGRAM PLACE COMMAND...
try() {
    local before=$tap_failed
    t "$1, $2" "${@:3}"
    result[$1/$2]=works
    [[ $tap_failed -eq $before ]] || result[$1/$2]=fails
}

# work LIBRARY BRICKS HOST
work() {
    local library=$1 place="$1 library, $2 bricks" url=gluster://$3/$1
    try "${programs[0]}" "$place" images_are_equal "$library" "$url"
    try "${programs[1]}" "$place" image_verifies "$library" "$url"
    try "${programs[2]}" "$place" fio_verifies "$library" "$3" "$library" gfapi
    try "${programs[3]}" "$place" fio_verifies "$library" "$3" "$library" gfapi_async
    smb_start "$library" "$library" "$3"
    try "${programs[4]}" "$place" share_works
    torture "$library-$2" | sort >"$T/torture-$library-$2"
    smb_stop
    result[${programs[5]}/$place]=$(wc -l <"$T/torture-$library-$2")
    try "${programs[6]}" "$place" export_works "$library" "$3"
}

on_bricks() {
    work stock "$1" "$2"
    work kiln "$1" "$2"
    is "$(comm -23 "$T/torture-stock-$1" "$T/torture-kiln-$1")" "" \
        "smbtorture on $1 bricks: tests that pass through GlusterFS's library pass through Kiln's"
    t "smbtorture on $1 bricks: at least 20 tests pass through Kiln's library" test "${result[${programs[5]}/kiln library, $1 bricks]}" -ge 20
}

bricks=${KILN_GFAPI_BRICKS:-kilnd stock}
if [[ $bricks == *kilnd* ]]; then
    front_start
    for v in stock kiln; do
        kiln volume create $v replica 2 "$T/b/$v"{1,2,3,4}
        kiln volume start $v
    done
    on_bricks kilnd localhost
    front_stop
    rm -r "$T/b"
fi
if [[ $bricks == *stock* ]]; then
    glusterd_start
    for v in stock kiln; do
        gl_create $v 2x2 >/dev/null
        gl volume start $v >/dev/null
        wait_for 240 "all bricks to be online" bricks_all_online $v 4
    done
    on_bricks stock "$glusterd_host"
fi

places=("stock library, stock bricks" "kiln library, stock bricks" "stock library, kilnd bricks" "kiln library, kilnd bricks")
echo "# | |$(printf ' %s |' "${places[@]}")"
echo "# |---|---|---|---|---|"
for program in "${programs[@]}"; do
    line="# | $program |"
    for place in "${places[@]}"; do
        line+=" ${result[$program/$place]:-not run} |"
    done
    echo "$line"
done
