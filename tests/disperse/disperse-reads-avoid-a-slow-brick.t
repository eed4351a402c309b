#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount reads a dispersed file from K bricks that answer soon: a brick behind a slow path gets few READs while spare bricks
# are fast, and its part again when the path is fast again.
# Covers: xlators/cluster/disperse/read-times.c, xlators/cluster/disperse/read.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

mib=32 reads=$((mib * 8)) # of 128 KiB
volume_split=brick
volume_new v 1x4+2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mnt=$T/mnt
mkdir -p "$mnt" "$T/dumps"

# Each brick is behind a proxy.
volume_client_volfile v default >"$T/v.vol"
for ((n = 0; n < ${#bricks[@]}; n++)); do
    port=${daemon_port[${brick_daemon[${bricks[n]}]}]}
    python3 "$(dirname "$0")/slow_proxy.py" "$port" 300 "$T/slow-$n" >"$T/proxy-$n" 2>"$T/log/proxy-$n.log" &
    wait_for 60 "the proxy's port" test -s "$T/proxy-$n"
    sed -i "s/remote-port $port\$/remote-port $(<"$T/proxy-$n")/" "$T/v.vol"
done
"$KILN_MOUNT" -f "$T/v.vol" -l "$T/log/kiln-mount.log" --statedump-dir "$T/dumps" --pid-file "$T/mount.pid" "$mnt"
pid=$(<"$T/mount.pid")

# Prints the number of READs that the mount has sent to each brick.
reads_sent() {
    awk '/^\[.*-client-[0-9]+\]/ { match($0, /client-[0-9]+/); brick = substr($0, RSTART + 7, RLENGTH - 7); n[brick] += 0 }
        /^calls-sent\.readv=/ { sub(/.*=/, ""); n[brick] += $0 }
        END { for (i = 0; i in n; i++) printf "%d ", n[i] }' "$(dump_take "$pid" "$T/dumps")"
}
# Sets `sent`: the READs to each brick while the file is read.
read_file() {
    local -a before after
    read -ra before <<<"$(reads_sent)"
    dd if="$mnt/file" of="$T/read" bs=128k iflag=direct status=none && cmp "$T/read" "$T/written"
    read -ra after <<<"$(reads_sent)"
    sent=()
    for ((n = 0; n < ${#after[@]}; n++)); do
        sent[n]=$((after[n] - before[n]))
    done
}
gets_most() {
    read_file && [[ ${sent[slow]} -gt $((reads / 2)) ]]
}
gets_few() {
    read_file && [[ ${sent[slow]} -lt $((reads / 8)) ]]
}

head -c "${mib}M" /dev/urandom >"$T/written"
cp "$T/written" "$mnt/file"
# Sets `slow`: a brick that gets READs. On a busy machine any brick may be slow for a while.
finds_brick() {
    read_file
    slow=0
    for ((n = 1; n < ${#bricks[@]}; n++)); do
        [[ ${sent[n]} -le ${sent[slow]} ]] || slow=$n
    done
    [[ ${sent[slow]} -gt $((reads / 2)) ]]
}
t_here "the brick that is to be slow gets READs" wait_for 240 "the choice" finds_brick
diag "READs to each brick: ${sent[*]}"
touch "$T/slow-$slow"
t_here "a slow brick gets few READs" wait_for 240 "the choice" gets_few
diag "with a slow brick $slow: ${sent[*]}"
rm "$T/slow-$slow"
t_here "a brick that is fast again gets READs again" wait_for 240 "the choice" gets_most
diag "with a fast brick $slow: ${sent[*]}"
umount "$mnt"
volume_stop v
