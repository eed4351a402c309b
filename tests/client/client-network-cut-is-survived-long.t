#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The network between a kiln-mount and a brick drops all frames of both sides, and no connection ends. A waiting call
# fails with ENOTCONN when the ping timeout has passed, and later calls fail at once. With two replicas the mount
# writes to the other one. When the network is back, the client reconnects: the same descriptor writes an open file,
# and the client takes its lock again, although the brick has not yet noticed that the old connection is dead. A cut
# shorter than the timeout causes no error. SIGTERM during a cut leaves no process and no mount.
# Covers: rpc/client/rpc-client.c, xlators/protocol/client/client.c, xlators/protocol/client/held-locks.c,
# xlators/protocol/server/session.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

# ---- two hosts, one brick on each
for host in 0 1; do
    ip netns add "host$host"
    ip link add "veth$host" type veth peer name eth netns "host$host"
    ip addr add "10.98.$host.1/24" dev "veth$host"
    ip link set "veth$host" up
    ip -n "host$host" addr add "10.98.$host.2/24" dev eth
    ip -n "host$host" link set eth up
    ip -n "host$host" link set lo up
done

volume_specs() {
    local brick i=0
    for brick in ${volume_bricks[$1]}; do
        echo "10.98.$i.2:${daemon_port[${brick_daemon[$brick]}]}:$brick"
        i=$((i + 1))
    done
}

cat >"$T/kilnd-on-its-host" <<END
#!/bin/bash
exec ip netns exec "host\$([[ "\$*" == *-b1.pid* ]] && echo 1 || echo 0)" "$KILND" "\$@"
END
chmod +x "$T/kilnd-on-its-host"
KILND=$T/kilnd-on-its-host

network_is_cut() {
    ip neigh replace "10.98.$1.2" lladdr 02:00:00:00:00:99 dev "veth$1" nud permanent
    ip -n "host$1" neigh replace "10.98.$1.1" lladdr 02:00:00:00:00:99 dev eth nud permanent
}

network_is_back() {
    ip neigh del "10.98.$1.2" dev "veth$1"
    ip -n "host$1" neigh del "10.98.$1.1" dev eth
}

# ---- what mounts do
is_away() {
    [[ $(ls "$mnt" 2>&1) == *"Transport endpoint is not connected"* ]]
}

is_back() {
    ls "$mnt" >/dev/null 2>&1
}

said() {
    printf '%s\n' "$1" >&7 2>>"$T/said"
}

volume_split=brick
volume_new plain 1x1
volume_new twice 1x2
volume_start plain
volume_start twice
mnt=$T/mnt
log=$T/log/kiln-mount-mnt.log
mount_kiln plain "$mnt" --attribute-timeout=0 --entry-timeout=0 '--xlator-option=plain-client-*.ping-timeout=4'
mount_kiln twice "$T/mnt-twice" --attribute-timeout=0 --entry-timeout=0 '--xlator-option=twice-client-*.ping-timeout=4'
wait_for 240 "the brick" is_back
exec 7>>"$mnt/open"
said before
exec 8>>"$mnt/locked"
flock -x 8
exec 6>>"$T/mnt-twice/open"
echo before >&6

network_is_cut 0
t_not "a call that waits for the unreachable brick fails" said meanwhile
t "the waiting call fails with ENOTCONN" grep -q "not connected" "$T/said"
t "the log gives the ping timeout as the reason" grep -q "the peer sent nothing for 4 s" "$log"
t "later calls fail at once" is_away
t_here "a write to two replicas succeeds on the reachable one" bash -c "echo meanwhile >&6"
network_is_back 0
t "the mount works again when the network is back" wait_for 240 "the brick" is_back
t_here "the same descriptor writes the open file again" said after
is "$(tr '\n' ' ' <"$mnt/open")" "before after " "the file has the lines from before and after"
mount_kiln plain "$T/other" 7>&- 8>&- 6>&-
t_not "the client holds its lock again" flock -n "$T/other/locked" true
t_not "the client lost no lock" grep client-lock-lost "$log"
exec 8>&-
t "the lock is free after its holder released it" timeout 240 flock "$T/other/locked" true
t_here "the other mount is unmounted" mount_end "$T/other"
echo after >&6
is "$(tr '\n' ' ' <"$T/mnt-twice/open")" "before meanwhile after " "the replicated file has all lines"
exec 6>&-
shd_start twice
read -ra bricks <<<"${volume_bricks[twice]}"
t "the replicas are equal after the heal" bricks_get_equal "${bricks[@]}"
kill -TERM "$shd_pid"
shd_pid=

# With the usual 42 s.
mount_kiln plain "$T/patient" 7>&-
exec 6>>"$T/patient/patient"
network_is_cut 0
(
    exec 6>&- 7>&-
    sleep 1
    network_is_back 0
) &
t_here "a write waits during a cut shorter than the ping timeout" bash -c "echo late >&6"
is "$(grep -c brick-peer-up "$T/log/kiln-mount-patient.log")" 1 "a short cut causes no second login"
wait $!
exec 6>&-

network_is_cut 0
stat "$mnt/open" >/dev/null 2>&1 7>&- &
pid=${mount_pid[$mnt]}
unset "mount_pid[$mnt]" "mount_is_kiln[$mnt]"
kill -TERM "$pid"
t "SIGTERM during a cut ends the mount" wait_for 240 "its end" process_gone "$pid"
status=0
wait "$pid" || status=$?
is "$status" 0 "the mount ends with status 0"
t_not "the mount table has no entry for it" mount_is_listed "$mnt"
exec 7>&-
network_is_back 0
