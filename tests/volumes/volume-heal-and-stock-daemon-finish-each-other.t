#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-heal heals the changes of a stock mount that a brick missed. kiln-heal is killed in the middle of a large file
# and in the middle of a directory, and stock's self-heal daemon finishes both heals; kiln-heal finishes a heal of a
# stock daemon that was killed, and a heal that the deaths of kiln-heal and kilnd have interrupted. A full brick fails
# its heals, which heal info names, and is healed when there is room. Each time replicas and indices are compared.
# Covers: xlators/cluster/replicate/crawl.c, heal/kiln-heal.c, volumes/heal/healer.c, volumes/verbs/verb-heal.c

. "$(dirname "$0")/../lib/kiln.sh"

mkdir -p "$T/b" "$T/mnt"
bricks=("$T"/b/1 "$T"/b/2)
mnt=$T/mnt
names=1000

# Counters and index entries that wait for a heal, and differences of the replicas except times, which clients may set
# on each brick at its own moment.
differences() {
    PYTHONPATH=$tests_dir/replicate python3 -c '
import sys, torture_bricks
try:
    lines = torture_bricks.pending(sys.argv[1:]) + torture_bricks.compare(sys.argv[1:], 2, "replicas")
except OSError as error:  # a heal changes the folders
    lines = [str(error)]
sys.stdout.write("".join(line + "\n" for line in lines if not line.startswith("times:")))' "${bricks[@]}" || echo "python failed"
}
is_whole() {
    [[ -z $(differences) ]]
}
becomes_whole() {
    wait_for 240 "equal replicas" is_whole || { differences | head -20 >&2; return 1; }
}
healer() {
    pgrep -P "$front_pid" -x kiln-heal
}
brick_leaves() {
    kiln volume reset-brick "${volume:=r}" "${bricks[0]}" start >/dev/null
}
brick_returns() {
    kiln volume start "$volume" force >/dev/null
}
own() {
    kiln volume set r cluster.self-heal-daemon "$1" >/dev/null
}
field() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$T/state/volumes/r.json" "$1"
}
stock_volfile() {
    local i
    for i in 0 1; do
        printf 'volume r-client-%s\n type protocol/client\n option remote-host 127.0.0.1\n option remote-port 49152\n' "$i"
        printf ' option remote-subvolume %s\n option transport-type tcp\n' "${bricks[i]}"
        printf ' option username %s\n option password %s\nend-volume\n' "$(field username)" "$(field password)"
    done
    printf 'volume r-replicate-0\n type cluster/replicate\n option volume-id %s\n' "$(field id)"
    printf ' option afr-pending-xattr r-client-0,r-client-1\n option iam-self-heal-daemon yes\n option self-heal-daemon enable\n'
    printf ' option %s-self-heal on\n' data metadata entry
    printf ' option background-self-heal-count 0\n option granular-entry-heal on\n option use-anonymous-inode yes\n'
    printf ' subvolumes r-client-0 r-client-1\nend-volume\n'
    printf 'volume r\n type debug/io-stats\n subvolumes r-replicate-0\nend-volume\n'
}
stock_start() {
    glusterfs -N -f "$T/stock.vol" -l "$T/log/stock-heal.log" --process-name glustershd --client-pid=-6 \
        --xlator-option "*replicate*.node-uuid=$(cat /proc/sys/kernel/random/uuid)" >>"$T/log/stock.out" 2>&1 </dev/null &
    stock_pid=$!
}
stock_kill() {
    { kill -KILL "$stock_pid" && wait "$stock_pid"; } 2>/dev/null || true
}
# All kinds of changes, in the folder $1.
change_all() {
    mkdir -p "$mnt/$1/made/below" && echo new >"$mnt/$1/made/below/new"
    echo more >>"$mnt/$1/grows"
    : >"$mnt/$1/shrinks"
    rm "$mnt/$1/goes" && rmdir "$mnt/$1/folder-goes"
    mv "$mnt/$1/moves" "$mnt/$1/made/moved"
    mv "$mnt/$1/folder-moves" "$mnt/$1/made/folder"
    chmod 600 "$mnt/$1/mode" && chown 123:456 "$mnt/$1/mode" && touch -d 2001-02-03 "$mnt/$1/mode"
    setfattr -n user.kiln -v text "$mnt/$1/mode" && setfattr -x user.goes "$mnt/$1/xattr"
    ln "$mnt/$1/grows" "$mnt/$1/made/hard" && ln -s ../grows "$mnt/$1/made/soft" && mkfifo "$mnt/$1/made/fifo"
    truncate -s 3M "$mnt/$1/made/sparse" && echo end >>"$mnt/$1/made/sparse"
    rm "$mnt/$1/kind" && mkdir "$mnt/$1/kind"
}
prepare() {
    mkdir -p "$mnt/$1/folder-goes" "$mnt/$1/folder-moves/deep" && echo deep >"$mnt/$1/folder-moves/deep/file"
    for name in grows shrinks goes moves mode xattr kind; do echo "$name" >"$mnt/$1/$name"; done
    setfattr -n user.goes -v text "$mnt/$1/xattr"
}
# Returns when the brick that was away has some of the names in the folder, but not all.
is_half_listed() {
    local n
    n=$(ls "$T/b/1/$1" 2>/dev/null | wc -l)
    [[ $n -ge 50 && $n -lt $names ]]
}
is_half_copied() {
    local n
    n=$(stat -c %b "$T/b/1/$1" 2>/dev/null || echo 0)
    [[ $n -ge 4096 && $n -lt 327680 ]]
}
poll() {
    local i
    for ((i = 0; i < 6000; i++)); do
        ! "$@" || return 0
        sleep 0.01
    done
    return 1
}
miss_large() {
    head -c "${2:-160M}" /dev/urandom >"$mnt/$1"
}
miss_names() {
    mkdir "$mnt/$1"
    python3 -c '
import sys
for i in range(int(sys.argv[2])):
    open("%s/%d" % (sys.argv[1], i), "w").write("file %d" % i)' "$mnt/$1" "$names"
}

front_start
kiln volume create r replica 2 "${bricks[@]}" >/dev/null
kiln volume set r cluster.self-heal-window-size 1 >/dev/null # blocks of 128 KiB: a heal of many steps
kiln volume start r >/dev/null
front_mount r "$mnt"
stock_volfile >"$T/stock.vol"

prepare own
prepare stock
brick_leaves
t "a stock mount changes files while a brick is away" change_all own
brick_returns
t "kiln-heal heals all changes of the stock mount" becomes_whole
t "the healed sparse file keeps its hole" test "$(stat -c %b "$T/b/1/own/made/sparse")" -lt 2048

own off
brick_leaves
change_all stock
miss_names by-stock
brick_returns
stock_start
t "stock's daemon has healed some names of a folder" poll is_half_listed by-stock
stock_kill
own on
t "kiln-heal finishes the heal of a killed stock daemon" becomes_whole

for kind in large names; do
    brick_leaves
    "miss_$kind" "half-$kind"
    brick_returns
    if [[ $kind == large ]]; then
        t "kiln-heal has copied a part of the large file" poll is_half_copied half-large
    else
        t "kiln-heal has healed some names of a folder" poll is_half_listed half-names
    fi
    kill -KILL "$(healer)"
    own off
    t_not "the heal of $kind was interrupted" is_whole
    stock_start
    t "stock's daemon finishes the heal of $kind" becomes_whole
    stock_kill
    own on
done

brick_leaves
miss_large both 32M
sum=$(sha256sum <"$T/b/2/both")
miss_names both-names
brick_returns
poll is_half_listed both-names || true
front_kill
front_start
t "kiln-heal finishes a heal after the death of kilnd" becomes_whole
wait_for 120 "the mount to find the bricks of the new kilnd" test -e "$mnt/both"
is "$(sha256sum <"$T/b/1/both")" "$sum" "the healed file has the contents that the mount wrote"
t "the mount reads the healed file" cmp "$mnt/both" "$T/b/1/both"

# An object that a crashed brick has left without a gfid, under a name that the other brick has missed.
brick_leaves
# The mount may have met only the brick that is away now since the death of kilnd.
t "a folder is made without the brick" wait_for 120 "the mount" mkdir "$mnt/nameless"
echo good >"$mnt/nameless/file"
mkdir -p "$T/b/1/nameless" && : >"$T/b/1/nameless/file"
brick_returns
t "kiln-heal heals a file and a folder without gfids" becomes_whole
is "$(cat "$T/b/1/nameless/file")" good "the file has the contents of the good copy"

# Kiln-heal cannot copy a file of 24 MiB to a brick of 16 MiB.
volume=f bricks=("$T"/b/3 "$T"/b/4) mnt=$T/full
mkdir -p "$T/b/3"
mount -t tmpfs -o size=16m kiln-full "$T/b/3"
mkdir "$T/b/3/brick" && bricks[0]=$T/b/3/brick
kiln volume create f replica 2 "${bricks[@]}" >/dev/null
kiln volume start f >/dev/null
front_mount f "$mnt"
brick_leaves
head -c 24M /dev/urandom >"$mnt/large"
echo small >"$mnt/small"
sum=$(sha256sum <"${bricks[1]}/large")
brick_returns
info_names_the_fault() {
    kiln heal f info | grep -qxF "/large - Heal failed: ${bricks[0]}: No space left on device"
}
t "heal info names the full brick and the error" wait_for 120 "the fault" info_names_the_fault
t "the log of the self-heal daemon has the error" grep -q 'is not healed: f-client-0: No space left on device' /var/log/kiln/heal.log
is "$(sha256sum <"${bricks[1]}/large")" "$sum" "the good copy is unchanged"
is "$(sha256sum <"$mnt/large")" "$sum" "the mount reads the good copy"
mount -o remount,size=64m "$T/b/3"
t "kiln heal is accepted" kiln heal f # instead of the healer's next look
t "kiln-heal heals the file after the brick has got room" becomes_whole
t_not "heal info has forgotten the fault" grep -q 'Heal failed' <<<"$(kiln heal f info)"
cd / && umount "$mnt"
kiln volume stop f >/dev/null
front_stop
umount "$T/b/3"
