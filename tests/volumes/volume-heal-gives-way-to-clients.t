#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-heal heals in small blocks while a client works, and ends; in large ones when the client rests, or when the option
# kiln.heal-throttle is off.
# Covers: xlators/cluster/heal-throttle.c, xlators/cluster/replicate/heal-data.c,
# xlators/performance/io-threads/io-threads.c, volumes/volfile-text.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/busy-clients.sh"

mkdir -p "$T/b"
bricks=("$T"/b/{1,2})
mib=32 files=20 # read in blocks of 128 KiB while a client works, else of 1 MiB

# While a brick is away.
miss() {
    kiln volume set r cluster.self-heal-daemon off
    kiln volume reset-brick r "$T/b/1" start
    head -c "${mib}M" /dev/urandom >"$T/mnt/large"
    rm -rf "$T/mnt/small"
    mkdir "$T/mnt/small"
    for ((i = 0; i < files; i++)); do
        echo "$RANDOM" >"$T/mnt/small/$i"
    done
    kiln volume start r force
}
# A crawl that ends before the mount has connected to the brick leaves the changes since to the next one.
heal_has_ended() {
    nothing_missed || { kiln volume heal r && false; }
}
nothing_missed() {
    [[ -z $(find "$T"/b/*/.glusterfs/indices/xattrop -type f -not -name 'xattrop-*') ]]
}
# The mount may have missed a brick in its last changes: they are healed, too.
all_end() {
    clients_end
    wait_for 240 "the heal of the client's last changes" heal_has_ended
}
# Prints the number of blocks that a heal reads from the good brick. The client reads none.
heal() {
    local before
    before=$(reads)
    kiln volume reset r cluster.self-heal-daemon >/dev/null
    wait_for 240 "the heal" heal_has_ended
    echo $(($(reads) - before))
}
reads() {
    kiln_json profile r | python3 -c 'import json, sys
for brick in json.load(sys.stdin)["bricks"]:
    if brick["path"] == sys.argv[1]:
        print(sum(fop["calls"] for fop in brick["fops"] if fop["fop"].upper() in ("READ", "READV")))' "$T/b/2"
}

front_start
kiln volume create r replica 2 "${bricks[@]}"
kiln volume start r
front_mount r "$T/mnt"
touch "$T"/mnt/attributes-{1..4}

t "files change while a brick is away" miss
clients_begin "$T/mnt"
beside=$(heal)
t "a heal ends beside a client" test "$beside" -gt 0
all_end
t "the replicas are equal" bricks_get_equal "${bricks[@]}"
# Clients that get no processor for 100 ms let blocks of 1 MiB pass.
t "the heal read $beside blocks, more than blocks of 1 MiB alone" test "$beside" -gt $((mib + 2 * files))

t "files change again" miss
sleep 1 # the client rests
resting=$(heal)
t "the heal without a client read $resting blocks of 1 MiB" test "$resting" -le $((mib + 2 * files))
t "the replicas are equal again" bricks_get_equal "${bricks[@]}"

t "the throttle is switched off" kiln volume set r kiln.heal-throttle off
t "files change a third time" miss
clients_begin "$T/mnt"
free=$(heal)
all_end
t "the heal beside a client read $free blocks of 1 MiB" test "$free" -le $((mib + 2 * files))
t "the replicas are equal in the end" bricks_get_equal "${bricks[@]}"
