#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `gluster volume quota VOL enable` runs on a replicated volume, and then a brick dies. It starts again without the
# quota, is healed, and reports in its log, in `kiln top`, in the statedump and in /metrics which feature is missing.
# Under KILND_STRICT_FEATURES=1 it does not start.
# Covers: libglusterfs/graph/unbuilt.c, glusterfsd/metrics.c

. "$(dirname "$0")/../lib/kiln.sh"

mnt=$T/mnt
glusterd_bricks_start
gl_create v 1x2 >/dev/null
gl volume start v >/dev/null
wait_for 120 "the bricks" bricks_all_online v 2
gl_mount v "$mnt"
wait_for 120 "the mount to reach the bricks" gl_mount_reaches "$mnt" v 1x2
brick=$T/bricks/v-0
log=/var/log/glusterfs/bricks/$(tr / - <<<"${brick#/}").log
brick_pid() { cat /var/run/gluster/vols/v/*-v-0.pid; }
one_brick() { [[ $(bricks_online v) == 1 ]]; }

t "glusterd enables the quota" gl volume quota v enable
t "glusterd enables bitrot" gl volume bitrot v enable
echo before >"$mnt/before"
kill -KILL "$(brick_pid)"
wait_for 120 "a brick to be gone" one_brick
echo missed >"$mnt/missed"
t "start force succeeds" gl volume start v force
t_here "the brick that died serves again" wait_for 120 "the brick" bricks_all_online v 2
has_missed() { [[ -e $brick/missed && $(cat "$brick/missed") == missed ]]; }
# The self-heal daemon, which was started anew, may not have reached the brick yet.
t "heal" wait_for 120 "a heal" gl volume heal v
t_here "the brick is healed" wait_for 120 "the file on the brick that was away" has_missed
is "$(cat "$brick/before")" before "the brick has its old files"

if [[ $BRICKD == kiln ]]; then
    for option in server-quota bitrot inode-quota; do
        t "an error of the log names $option" grep -qE " E .*option $option (on|enable) is not built: .*feature-not-built" "$log"
    done
    kill -USR1 "$(brick_pid)"
    dump_says() { grep -qs "^not-built=features/quota server-quota: no limit is kept" /var/run/gluster/*.dump.*; }
    t_here "the statedump names the missing features" wait_for 60 "a statedump" dump_says

    # By hand, with the socket that glusterd gives to no brick: the same volfile.
    volfile=$(ls /var/lib/glusterd/vols/v/v.$glusterd_host.*bricks-v-1.vol)
    kill -TERM "$(cat /var/run/gluster/vols/v/*-v-1.pid)"
    wait_for 120 "a brick to be gone" one_brick
    "$KILND" -N -f "$volfile" --brick-port 0 --port-file "$T/port" --management-socket "$T/questions" -l "$T/log/by-hand.log" </dev/null &
    pid=$!
    wait_for 120 "kilnd to listen" test -s "$T/port"
    kiln() { "${KILN_BUILD:-$source_dir/build}/kiln" --socket="$T/questions" "$@"; }
    kiln top --once >"$T/top"
    t "kiln top shows the number of missing features" grep -q "NOT BUILT: 4" "$T/top"
    t "kiln top names a missing feature" grep -qE "features/quota +server-quota +no limit is kept" "$T/top"
    curl -s --unix-socket "$T/questions" http://kiln/metrics >"$T/metrics"
    for label in 'layer="features/quota",option="server-quota"' 'layer="features/bitrot-stub",option="bitrot"' \
        'layer="features/marker",option="quota"'; do
        t "a metric has $label" grep -q "^kiln_brick_unbuilt_feature{.*$label} 1\$" "$T/metrics"
    done
    kill -TERM $pid
    t_here "kilnd ends with status 0" wait "$pid"
    is_refused() { "$KILND" -N --strict-features -f "$volfile" --brick-port 0 -l "$T/log/strict.log" </dev/null; }
    t_not "--strict-features: kilnd does not start" is_refused
    t "--strict-features: the log names the reason" grep -qE "is not built.*start-failed" "$T/log/strict.log"
    gl volume start v force >/dev/null
    wait_for 120 "both bricks" bricks_all_online v 2

    # The same under glusterd, whose environment its bricks have.
    kill -TERM "$glusterd_pid"
    wait "$glusterd_pid" || true
    kill -KILL "$(brick_pid)"
    seen=$(wc -l <"$log")
    KILND_STRICT_FEATURES=1 glusterd -N -l "$T/log/glusterd.log" -p "$T/glusterd.pid" >>"$T/log/glusterd.out" 2>&1 </dev/null &
    glusterd_pid=$!
    wait_for 240 "glusterd to answer" gluster --mode=script volume list
    refused() { tail -n "+$((seen + 1))" "$log" | grep -qE "is not built.*start-failed"; }
    t_here "a strict brick refuses to start" wait_for 120 "the log to say so" refused
    t_here "the strict brick stays offline" wait_for 60 "glusterd to know it" one_brick
    t "glusterd disables the quota" gl volume quota v disable
    t "glusterd disables bitrot" gl volume bitrot v disable
    wait_for 120 "glusterd to start the brick" gl volume start v force >/dev/null
    t_here "the strict brick serves without the features" wait_for 120 "both bricks" bricks_all_online v 2
fi
umount "$mnt"
t "gluster volume stop succeeds" gl volume stop v
