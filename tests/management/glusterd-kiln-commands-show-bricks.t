#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# /etc/kiln/kilnd.conf reaches the kilnds that glusterd starts: kiln list, status, top, profile, statedump and explain,
# and /metrics, show their bricks, with one process for all bricks and with one for each. A wrong line of the file is in
# the log of the brick. use-kiln.sh names the volumes whose options kilnd refuses before anything is changed. kiln upgrade
# replaces the programs of these kilnds while a stock mount works: no call fails, the process ids stay, and glusterd sees
# all bricks again. Without its glusterd a kilnd refuses the upgrade.
# Covers: glusterfsd/config.c, glusterfsd/questions.c, bricks/upgrade.c, bricks/management.c, cli/upgrade.c,
# volumes/verbs/verbs-process.c, extras/use-kiln.sh

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

mkdir -p "$T/etc/upper" "$T/etc/work" "$T/mnt"
mount -t overlay kiln-test -o "lowerdir=/etc,upperdir=$T/etc/upper,workdir=$T/etc/work" /etc
mkdir -p /etc/kiln
sed 's/^#metrics-address/metrics-address/' "$source_dir/extras/kilnd.conf" >/etc/kiln/kilnd.conf
kiln() {
    "${KILN:-${KILN_BUILD:-$source_dir/build}/kiln}" "$@"
}
bricks_in_metrics() {
    curl -sS --fail --max-time 60 http://127.0.0.1:9421/metrics | grep -c '^gluster_brick_up{'
}
bricks_in_status() {
    kiln "$@" status | grep -c '^Brick localhost:.* Y '
}

# Before the switch: a volume of stock's whose option kilnd refuses.
system_cover
glusterd_start
gl_create web 1x2
gl_create odd 1x2
gl volume set odd network.compression on
t "use-kiln.sh on names the volume whose option kilnd refuses" fails_with "volume odd: " use_kiln on
t_not "nothing was changed" test -L /usr/sbin/glusterfsd
use_kiln on --force >"$T/forced"
t "use-kiln.sh on --force switches anyway, and still names the volume" grep -q '^volume odd: ' "$T/forced"
t "the switch is on" use_kiln status
gl volume reset odd network.compression
use_kiln on >"$T/again"
t_not "use-kiln.sh on has no complaint when the option is reset" grep '^volume' "$T/again"

# A process for each brick: the first has the socket and the address of the file.
gl volume start web
t "both bricks are online" wait_for 120 "bricks" test "$(bricks_online web)" = 2
is "$(bricks_in_status)" 1 "kiln status shows the brick of the process at the socket"
is "$(kiln list)" web "kiln list names the volume"
own=$(compgen -G '/run/kiln/kilnd.socket.*')
is "$(bricks_in_status --socket "$own")" 1 "kiln status shows the other brick at the socket with the process id"
is "$(kiln status | tail -n 1)" "Another kilnd: kiln --socket $own status" "kiln status names the socket of the other kilnd"
is "$(bricks_in_metrics)" 1 "/metrics shows one process"

# upgrade_under_work COUNT: kiln upgrade replaces the programs of so many processes while a mount works on volume web.
has_bricks() { # VOLUME COUNT
    [[ $(bricks_online "$1") == "$2" ]]
}
work=$tests_dir/faults/upgrade_work.py
upgrade_under_work() {
    local kind pids=() before
    rm -f "$T/stop" "$T/mnt/sync"
    for kind in sync lock waiter removed; do
        python3 "$work" "$kind" "$T/mnt" "$T/stop" >"$T/log/$kind.log" 2>&1 &
        pids+=($!)
        wait_for 240 "$kind" grep -q ready "$T/log/$kind.log"
    done
    before=$(glusterd_brick_pids | sort)
    kiln upgrade >"$T/upgraded"
    is "$(grep -c '^kilnd .* follows .* came along' "$T/upgraded")" "$1" "kiln upgrade replaces the program of $1 processes"
    is "$(glusterd_brick_pids | sort)" "$before" "the process ids stay"
    touch "$T/stop"
    for kind in sync lock waiter removed; do
        t_here "$kind ends well" wait "${pids[0]}"
        pids=("${pids[@]:1}")
    done
}
gl_mount web "$T/mnt"
upgrade_under_work 2
t "glusterd sees both bricks again" wait_for 120 "bricks" has_bricks web 2
gl volume set web features.read-only on
is_read_only() { ! { echo more >>"$T/mnt/sync"; } 2>/dev/null; }
t "the bricks get an option that glusterd sets after the upgrade" wait_for 120 "the option" is_read_only
gl volume reset web features.read-only
umount "$T/mnt"
gl volume stop web force
has_no_socket() { ! compgen -G '/run/kiln/*socket*'; }
t "no socket stays when the bricks end" wait_for 60 "the sockets to go" has_no_socket

# One process for all.
gl volume set all cluster.brick-multiplex on
gl volume start web
gl volume start odd
t "all bricks are online" wait_for 120 "bricks" test "$(bricks_online all)" = 4
is "$(glusterd_brick_pids | wc -l)" 1 "one process serves all bricks"
is "$(bricks_in_status)" 4 "kiln status shows all bricks"
is "$(kiln list | sort | tr '\n' ' ')" "odd web " "kiln list names both volumes"
is "$(bricks_in_metrics)" 4 "/metrics shows all bricks"
gl_mount web "$T/mnt"
for i in {1..20}; do
    dd if=/dev/zero of="$T/mnt/f$i" bs=64k count=1 conv=fsync status=none
done
volumes_of_top() {
    kiln --json top --once | python3 -c 'import json, sys; print(*sorted({b["volume"] for b in json.load(sys.stdin)["bricks"]}))'
}
is "$(volumes_of_top)" "odd web" "kiln top shows the bricks of both volumes"
t "kiln volume profile shows the writes" grep -q '^  writev\|^  WRITE\|^  write' <(kiln volume profile web)
t "kiln volume profile slow shows the slowest calls" grep -q 'Milliseconds' <(kiln volume profile web slow)
dump=$(kiln statedump)
t "kiln statedump prints the name of a file that is there" test -s "$dump"
t "kiln explain explains the file" grep -q "^Bricks" <(kiln explain "$dump")
t "kiln pools answers" kiln pools
t "a verb about volumes names the command of glusterd" fails_with "gluster volume create" kiln volume create x "$T/x"
gl volume status web mem >"$T/mem"
t "gluster volume status mem shows the figures of the allocator" grep -qE '^Uordblks +: [1-9]' "$T/mem"
upgrade_under_work 1
t "glusterd sees all bricks again" wait_for 120 "bricks" has_bricks all 4
gl volume stop odd force
is "$(glusterd_brick_pids | wc -l)" 1 "glusterd detaches the bricks of a volume from the new program"
gl volume start odd
t "glusterd attaches the bricks of a volume to the new program" wait_for 120 "bricks" has_bricks all 4
upgrade_under_work 1
kill -9 "$glusterd_pid"
refuses_upgrade() {
    fails_with 'glusterd, which has the volfiles of the bricks, does not answer' kiln upgrade
}
t "a kilnd without its glusterd refuses the upgrade" wait_for 60 "the refusal" refuses_upgrade
t "the mount works on" cat "$T/mnt/sync"
glusterd -N -l "$T/log/glusterd.log" -p "$T/glusterd.pid" >>"$T/log/glusterd.out" 2>&1 </dev/null &
glusterd_pid=$!
t "glusterd sees all bricks after its start" wait_for 240 "bricks" has_bricks all 4
umount "$T/mnt"
gl volume stop web force
gl volume stop odd force

# A wrong line.
echo 'log-level = LOUD' >>/etc/kiln/kilnd.conf
line=$(wc -l </etc/kiln/kilnd.conf)
t_not "a wrong line keeps the volume from starting" gl volume start web
t "the log of the brick names file, line, key and expected value" grep -rq \
    "/etc/kiln/kilnd.conf:$line: log-level = LOUD: expected CRITICAL" /var/log/glusterfs/bricks
is "$(glusterd_brick_pids)" "" "no brick process runs"
sed -i '$d' /etc/kiln/kilnd.conf
t "the volume starts when the line is gone" gl volume start web
