#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The options quorum-count and ec-read-mask of dispersed volumes in kiln-mount and in the stock client. With fewer good
# bricks than quorum-count the same changes fail in both clients, with EIO, and reads go on; kiln-mount leaves nothing to
# heal then. A change that one brick of the quorum refuses fails with EIO, and stays; kiln-heal completes it. READs go to
# the bricks of the mask; where these are too few the stock client fails with EIO, and kiln-mount reads from others. New
# values act at once, bad values are refused at the mount, and keep the value of before in a running mount.
# `kiln volume set` checks both, and the other options of dispersed sets reach mounts, too.
# Covers: xlators/cluster/disperse/child-options.c, xlators/cluster/disperse/read.c, volumes/volume-options.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

here=$(dirname "$(readlink -f "$0")")
mkdir "$T/dumps"
volume_split=brick
BRICK_POSIX_OPTIONS="reserve 0" volume_new v 1x4+2 # space counts as soon as it is free
read -ra bricks <<<"${volume_bricks[v]}"
# the first brick is on a disk that can be filled
rm -r "${bricks[0]}"
mkdir "${bricks[0]}"
mount -t tmpfs -o size=8m,mode=755 kiln-test "${bricks[0]}"
brick_make "${bricks[0]}" "${volume_id[v]}"
volume_start v
kiln=$T/kiln stock=$T/stock

# OPTION: both clients mount with `KEY VALUE`. Neither heals.
mount_both() {
    volfile_dispersed=$1
    mount_kiln v "$kiln" --statedump-dir="$T/dumps" '--xlator-option=*disperse*.background-heals=0'
    mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0 '--xlator-option=*disperse*.background-heals=0'
    volfile_dispersed=
}
end_both() {
    mount_end "$kiln"
    mount_end "$stock"
}
# Kills bricks, and waits until both clients know it.
take_away() {
    local i
    for i in "$@"; do
        daemon_kill "$(daemon_of "$i")"
    done
    settle
}
settle() {
    wait_for 120 "kiln-mount to be connected to its bricks" children_up "${#daemon_pid[@]}" "$kiln"
    mount_settle "$stock"
}
bring_back() {
    local i
    for i in "$@"; do
        daemon_start "$(daemon_of "$i")"
    done
}
errors_of() { sed 's/.* //' | sort -u; }
prepare() {
    python3 "$here/quorum_work.py" prepare "$kiln/$1-k"
    python3 "$here/quorum_work.py" prepare "$stock/$1-s"
    sleep 2 # no lock is held any more
}
# NAME KIND: makes the calls through both clients.
call_both() {
    by_kiln=$(python3 "$here/quorum_work.py" "$2" "$kiln/$1-k")
    by_stock=$(python3 "$here/quorum_work.py" "$2" "$stock/$1-s")
}
# Gives kiln-mount the option `KEY VALUE` ("": no option), as a new volfile does.
options_taken() { [[ $(grep -c mount-options "$T/log/kiln-mount-kiln.log") -gt $1 ]]; }
reconfigure() {
    local before
    before=$(grep -c mount-options "$T/log/kiln-mount-kiln.log" || true)
    volfile_dispersed=$1 volume_client_volfile v default >"$T/v-kiln.kiln.vol"
    kill -HUP "${mount_pid[$kiln]}"
    wait_for 60 "the options" options_taken "$before"
}
shows() { grep -qx "$1" "$(dump_take "${mount_pid[$kiln]}" "$T/dumps")"; }

# ---- values ----------------------------------------------------------------------------------

# The log has the reason, in the words of the option.
refuses() {
    mkdir -p "$T/no"
    volfile_dispersed=$1 volume_client_volfile v default >"$T/no.vol"
    ! "$KILN_MOUNT" -f "$T/no.vol" -l "$T/no.log" "$T/no" >"$T/no.out" 2>&1 || { umount "$T/no"; return 1; }
    grep -hF "option $1: $2" "$T/no.out" "$T/no.log"
}
t "a quorum of fewer bricks than a file needs is refused" refuses "quorum-count 3" "0, or 4 to 6 are possible"
t "a quorum of more bricks than there are is refused" refuses "quorum-count 7" "0, or 4 to 6 are possible"
t "a mask of too few bricks is refused" refuses "ec-read-mask 0:1:2:2" "3 bricks are too few: a read needs 4"
t "a mask with the index of no brick is refused" refuses "ec-read-mask 0:1:2:6" "6 is not the index of a brick"

# ---- a quorum --------------------------------------------------------------------------------

mount_both "quorum-count 5"
prepare one
take_away 5
call_both one looks
is "$by_kiln" "$by_stock" "with 5 of 6 bricks and a quorum of 5 both clients answer reads alike"
call_both one changes
is "$by_kiln" "$by_stock" "with 5 of 6 bricks and a quorum of 5 both clients answer changes alike"
is "$(errors_of <<<"$by_kiln")" ok "all changes are made"
end_both
bring_back 5
kiln_heal_start v
t "kiln-heal heals the brick that was away" wait_for 120 "no pending object" nothing_pending "${bricks[@]}"
kill "$shd_pid" && wait "$shd_pid" || true

mount_both "quorum-count 5"
prepare two
end_both
t "nothing waits for a heal" nothing_pending "${bricks[@]}"
mount_both "quorum-count 5"
take_away 4 5
sleep 2
call_both two looks
is "$by_kiln" "$by_stock" "with 4 bricks both clients answer reads alike"
is "$(errors_of <<<"$by_kiln")" ok "all reads are answered"
by_kiln=$(python3 "$here/quorum_work.py" changes "$kiln/two-k")
sleep 2
t "changes that kiln-mount refuses leave nothing to heal" nothing_pending "${bricks[@]}"
t "the log has the reason" grep -F "4 bricks are online and not behind, and quorum-count is 5 [disperse-quorum-refused]" \
    "$T/log/kiln-mount-kiln.log"
by_stock=$(python3 "$here/quorum_work.py" changes "$stock/two-s")
is "$by_kiln" "$by_stock" "with 4 bricks both clients answer changes alike"
is "$(errors_of <<<"$by_kiln")" EIO "all changes fail with EIO"

reconfigure "quorum-count 4"
t "a smaller quorum of the new volfile acts at once" touch "$kiln/four"
reconfigure "quorum-count 6"
t "a larger quorum of the new volfile acts at once" fails_with "Input/output error" touch "$kiln/six"
reconfigure "quorum-count 3"
t "a bad quorum keeps the one of before" fails_with "Input/output error" touch "$kiln/six"
t "the statedump shows that one" shows quorum-count=6
t "the log names the bad value" grep -F "option quorum-count 3: 0, or 4 to 6 are possible" "$T/log/kiln-mount-kiln.log"
reconfigure ""
t "without the option 4 bricks are enough" touch "$kiln/none"
t "the statedump shows no quorum" shows quorum-count=0
end_both
bring_back 4 5

# ---- a change that misses the quorum ---------------------------------------------------------

kiln_heal_start v
t "kiln-heal heals the bricks that were away" wait_for 120 "no pending object" nothing_pending "${bricks[@]}"
kill "$shd_pid" && wait "$shd_pid" || true
mount_both "quorum-count 6"
head -c 300000 /dev/urandom >"$T/old"
head -c 300000 /dev/urandom >"$T/new"
head -c 4096 /dev/urandom >"$T/block"
cp "$T/old" "$kiln/k"
cp "$T/old" "$stock/s"
sleep 2
dd if=/dev/zero of="${bricks[0]}/fill" bs=4k status=none 2>/dev/null || true
extend() { dd if="$T/block" of="$1" bs=4096 seek=100 conv=notrunc status=none; }
t "with a full brick a write through kiln-mount fails with EIO" fails_with "Input/output error" extend "$kiln/k"
t "so does a write through the stock client" fails_with "Input/output error" extend "$stock/s"
sleep 2
t "the stock client reads the bytes that kiln-mount has written with EIO" cmp -i 0:409600 "$T/block" "$stock/k"
t "kiln-mount reads those that the stock client has written with EIO" cmp -i 0:409600 "$T/block" "$kiln/s"
t_not "the full brick is to be healed" nothing_pending "${bricks[@]}"
t "the log says so" grep -F "5 bricks have made the change, and quorum-count is 6" "$T/log/kiln-mount-kiln.log"
t "the file stays closed for changes" fails_with "Input/output error" chmod 600 "$kiln/k"
rm "${bricks[0]}/fill"
volfile_dispersed="quorum-count 6" kiln_heal_start v
t "kiln-heal with the quorum heals the files" wait_for 120 "no pending object" nothing_pending "${bricks[@]}"
t "all fragments belong together" python3 "$here/disperse_work.py" fragments 2 "${bricks[@]}"
t "the file can be changed again" cp "$T/new" "$kiln/k"
t "and so can the stock client's" cp "$T/new" "$stock/s"
kill "$shd_pid" && wait "$shd_pid" || true
unset shd_pid
end_both

# ---- the mask of reads -----------------------------------------------------------------------

# Prints the number of READs that each brick has served.
reads_served() {
    local i
    for i in "${!bricks[@]}"; do
        [[ -n ${daemon_pid[$(daemon_of "$i")]:-} ]] || { echo -; continue; }
        sed -n 's/^readv\.hits=//p' "$(dump_take "${daemon_pid[$(daemon_of "$i")]}" "$T")" | awk '{ n += $1 } END { print n + 0 }'
    done | paste -sd ' '
}
# MNT: reads all files, of which a client has no copies. Sets `asked`: the bricks that got READs.
read_all() {
    local -a before after
    local i name
    echo 3 >/proc/sys/vm/drop_caches
    read -ra before <<<"$(reads_served)"
    for name in {1..12}; do
        cmp "$1/masked/$name" "$T/new" || return 1
    done
    read -ra after <<<"$(reads_served)"
    asked=
    for i in "${!bricks[@]}"; do
        [[ ${after[i]} == "${before[i]}" ]] || asked+=$i
    done
}
mount_both "ec-read-mask 5:0:2:3"
mkdir "$kiln/masked"
for name in {1..12}; do
    cp "$T/new" "$kiln/masked/$name"
done
sleep 2
t_here "kiln-mount reads files" read_all "$kiln"
is "$asked" 0235 "kiln-mount sends READs to the bricks of the mask"
t_here "the stock client reads files" read_all "$stock"
is "$asked" 0235 "the stock client sends READs to these bricks, too"
t "the statedump shows the mask" shows ec-read-mask=0:2:3:5
t "no READ went beside it" shows reads-beside-mask=0
reconfigure "ec-read-mask 0:1:2:3:4"
t_here "kiln-mount reads files with another mask" read_all "$kiln"
t "the brick outside of the new mask is not asked" test "${asked#*5}" == "$asked"
reconfigure "ec-read-mask 0:1"
t "a bad mask keeps the one of before" shows ec-read-mask=0:1:2:3:4
t "the log names the bad mask" grep -F "option ec-read-mask 0:1: 2 bricks are too few" "$T/log/kiln-mount-kiln.log"
reconfigure "ec-read-mask 5:0:2:3"
take_away 0
t_here "kiln-mount reads files without a brick of the mask" read_all "$kiln"
t "the other bricks of the mask are asked" grep -q '2.*3.*5' <<<"$asked"
t_not "the statedump shows READs beside the mask" shows reads-beside-mask=0
echo 3 >/proc/sys/vm/drop_caches
t "the stock client fails with EIO" fails_with "Input/output error" cmp "$stock/masked/1" "$T/new"
end_both
volume_stop v

# ---- kiln volume set -------------------------------------------------------------------------

mkdir -p "$T/b" "$T/d" "$T/dumps"
front_start
kiln volume create d disperse 3 redundancy 1 "$T"/b/{1,2,3} >/dev/null
kiln volume create r replica 3 "$T"/b/{4,5,6} >/dev/null
t "kiln volume set refuses a quorum of too few bricks" fails_with "0, or 2 to 3 are possible" kiln volume set d disperse.quorum-count 1
t "kiln volume set refuses a mask of too few bricks" fails_with "1 bricks are too few" kiln volume set d disperse.ec-read-mask 1
t "kiln volume set refuses the options for a replicated volume" fails_with "volume r is not dispersed" \
    kiln volume set r disperse.quorum-count 2
kiln volume set d disperse.quorum-count 3 disperse.ec-read-mask 0:2 >/dev/null
is "$(kiln volume get d disperse.quorum-count | grep -o '3$')" 3 "kiln volume get shows the quorum"
kiln volume start d >/dev/null
"$KILN_MOUNT" --hard=0 --statedump-dir "$T/dumps" -l "$T/log/kiln-mount-d.log" localhost:/d "$T/d"
t "a file is made with all bricks" touch "$T/d/file"
sleep 2
kiln volume reset-brick d "$T/b/3" start >/dev/null
is_refused() { ! touch "$T/d/new" 2>/dev/null; }
t "without a brick no file is made" wait_for 60 "the brick to be gone" is_refused
kiln volume set d disperse.quorum-count 2 >/dev/null
t "a smaller quorum reaches the mount" wait_for 60 "the option" touch "$T/d/two"
kiln volume set d disperse.quorum-count 3 >/dev/null
t "a larger quorum reaches the mount" wait_for 60 "the option" is_refused
kiln volume set d disperse.read-policy round-robin disperse.stripe-cache 8 disperse.parallel-writes off disperse.background-heals 2 \
    disperse.self-heal-window-size 4 disperse.eager-lock-timeout 2 disperse.other-eager-lock off disperse.optimistic-change-log off >/dev/null
dump_has() { grep -qx "$1" "$(dump_take "$(pgrep -f "^$KILN_MOUNT .*localhost:/d")" "$T/dumps")"; }
t "the read policy reaches the mount" wait_for 60 "the option" dump_has read-policy=round-robin
t "the stripe cache reaches the mount" dump_has stripe-cache=8
kiln volume reset d disperse.quorum-count >/dev/null
t "a reset reaches the mount" wait_for 60 "the option" touch "$T/d/reset"
umount "$T/d"
front_stop
