#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# While a client works, kiln-heal heals a dispersed volume, and rebalances a volume, in small blocks, and both end. The option
# kiln.heal-throttle off makes the heal, and cluster.rebal-throttle aggressive the rebalance, run at full rate beside the client.
# Covers: xlators/cluster/heal-throttle.c, xlators/cluster/disperse/heal-data.c, xlators/cluster/disperse/crawl.c,
# Covers: xlators/cluster/distribute/rebalance.c, xlators/cluster/distribute/migrate-copy.c, volumes/heal/rebalance.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/busy-clients.sh"

mkdir -p "$T/b" "$T/mnt"
mib=24 files=12 file_mib=4

# VOLUME: prints the number of READs of all its bricks. The client reads nothing.
reads() {
    kiln_json profile "$1" | python3 -c 'import json, sys
print(sum(fop["calls"] for brick in json.load(sys.stdin)["bricks"] for fop in brick["fops"]
          if fop["fop"].upper() in ("READ", "READV")))'
}
version() {
    getfattr --absolute-names -e hex -n trusted.ec.version --only-values "$T/b/$1/large" | od -An -tx1
}
large_is_healed() {
    [[ $(version d1) == "$(version d2)" ]]
}
# Heals a file that brick 1 has missed, beside a client. Prints the number of READs.
heal_beside_client() {
    local before
    kiln volume set d cluster.self-heal-daemon off >/dev/null
    kiln volume reset-brick d "$T/b/d1" start >/dev/null
    head -c "${mib}M" /dev/urandom >"$T/mnt/large"
    sync "$T/mnt/large"
    kiln volume start d force >/dev/null
    clients_begin "$T/mnt"
    before=$(reads d)
    kiln volume reset d cluster.self-heal-daemon >/dev/null
    wait_for 240 "the heal" large_is_healed
    clients_end
    echo $(($(reads d) - before))
}
is_over() {
    kiln volume rebalance "$1" status | grep -qE '^Rebalance of .*: (completed|failed)$'
}
# VOLUME THROTTLE [CLIENT]: rebalances a new volume after add-brick, beside a client or without one. Prints the number of READs
# for a moved file.
rebalance() {
    local i moved before
    kiln volume create "$1" "$T/b/$1-1" "$T/b/$1-2" >/dev/null
    kiln volume set "$1" cluster.rebal-throttle "$2" >/dev/null
    kiln volume start "$1" >/dev/null
    front_mount "$1" "$T/mnt" >/dev/null
    for ((i = 0; i < files; i++)); do
        head -c "${file_mib}M" /dev/urandom >"$T/mnt/file$i"
    done
    md5sum "$T"/mnt/file* >"$T/sums"
    kiln volume add-brick "$1" "$T/b/$1-3" >/dev/null
    sleep 1
    [[ -z ${3:-} ]] || clients_begin "$T/mnt"
    before=$(reads "$1")
    kiln volume rebalance "$1" start >/dev/null
    wait_for 240 "the rebalance" is_over "$1"
    [[ -z ${3:-} ]] || clients_end
    moved=$(find "$T/b/$1-3" -path "$T/b/$1-3/.glusterfs" -prune -o -name 'file*' ! -perm 1000 -print | wc -l)
    echo $((($(reads "$1") - before) / moved))
}

front_start
kiln volume create d disperse 3 redundancy 1 "$T"/b/d{1,2,3}
kiln volume start d
front_mount d "$T/mnt"
# Two bricks are read. A client that gets no processor for a while lets large blocks pass.
small=$(heal_beside_client)
t "the heal beside a client reads $small blocks, many of them of 64 KiB" test "$small" -ge $((mib * 2))
kiln volume set d kiln.heal-throttle off
large=$(heal_beside_client)
t "the heal that does not give way reads $large blocks of 2 MiB" test "$large" -le "$mib"
umount "$T/mnt"

small=$(rebalance p normal client)
t "the rebalance beside a client reads $small blocks of a file, many of them of 128 KiB" test "$small" -ge $((file_mib * 4))
t "the files have their contents" md5sum --quiet -c "$T/sums"
umount "$T/mnt"
large=$(rebalance q aggressive client)
t "the aggressive rebalance beside a client reads $large blocks of a file, of 1 MiB" test "$large" -le $((file_mib * 3))
t "the files have their contents again" md5sum --quiet -c "$T/sums"
umount "$T/mnt"
large=$(rebalance r normal)
t "the rebalance without a client reads $large blocks of a file, of 1 MiB" test "$large" -le $((file_mib * 3))
umount "$T/mnt"
