#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One of three bricks is fuller than min-free-disk allows. kiln-mount creates the files that hash to it on another
# brick, with a linkto file on the hashed brick. New directories give the full brick no hash range. A stock mount
# finds every file.
# Covers: xlators/cluster/distribute/space.c, xlators/cluster/distribute/create.c, xlators/cluster/distribute/layout.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

alike=("--xlator-option=*dht.weighted-rebalance=off")
mkdir -p "$T/v/b1"
mount -t tmpfs -o size=64m,mode=755 small "$T/v/b1"
volume_new v 3x1
volume_start v
mnt=$T/mnt

bytes_of() {
    local blocks size
    read -r blocks size < <(stat -f -c '%b %S' "$1") && echo $((blocks * size))
}

has_all_bricks() {
    local bytes
    bytes=$(bytes_of "$mnt" 2>/dev/null) && [[ $bytes -eq $((2 * $(bytes_of "$T") + $(bytes_of "$T/v/b1"))) ]]
}

# The mount asks for the free space from time to time, when a client makes an object.
probes=0
knows_that_it_is_full() {
    probes=$((probes + 1))
    touch "$mnt/d/probe$probes"
    [[ -n $(find "$T/v/b1/d" -type f -perm 1000) ]]
}

write_files() {
    local i
    for i in {1..30}; do
        echo "text $i" >"$mnt/d/file$i" || return 1
    done
}

# Where the texts are.
files_on() {
    find "$T/v/$1/d" -type f -name 'file*' ! -perm 1000 | wc -l
}

mount_kiln v "$mnt" --attribute-timeout=0 --entry-timeout=0 "${alike[@]}"
wait_for 240 "all bricks" has_all_bricks
mkdir "$mnt/d"
head -c 62000000 /dev/zero >"$T/v/b1/.glusterfs/filling"
wait_for 240 "the mount to know that a brick is full" knows_that_it_is_full
t "30 files are created" write_files
is "$(files_on b1)" 0 "no file is on the full brick"
is "$(($(files_on b0) + $(files_on b2)))" 30 "all files are on the other bricks"
t "the full brick has linkto files for the names that hash to it" test -n "$(find "$T/v/b1/d" -type f -name 'file*' -perm 1000)"
is "$(cat "$mnt"/d/file* | sort -u | wc -l)" 30 "the mount reads every file"
mkdir "$mnt/new"
is "$(getfattr --absolute-names -e hex -n trusted.glusterfs.dht "$T/v/b1/new" | grep -o '0x.*')" "0x$(printf %032d 0)" \
    "a new folder has no names there"
mount_volume v "$T/stock" plain --attribute-timeout=0 --entry-timeout=0
is "$(cat "$T"/stock/d/file* | sort -u | wc -l)" 30 "a stock mount reads every file"
t_here "the volume is unmounted" mount_end "$mnt"
mount_end "$T/stock"
volume_stop v
umount "$T/v/b1"
