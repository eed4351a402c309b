#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A volume gets other layers, and its brick another port, while applications have files and directories open, write,
# and wait for a lock through kiln-mount. The mount continues with the new volfile, and no application sees an error.
# The mount does not switch to a volfile whose bricks are down, and its log says so.
# Covers: xlators/mount/fuse/switch.c, mount/volume.c, mount/spec.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

volume_new v 1x1
volume_start v
volfile_bare v "$(volume_specs v)" >"$T/with.vol"
# Without features/utime: one layer less.
volfile_groups v 1x1 mount "$(volume_specs v)" >"$T/without.vol"
volfile_layer v debug/io-stats v-client-0 >>"$T/without.vol"
cp "$T/with.vol" "$T/v.vol"
python3 "$kiln_lib/volfile-server.py" 127.0.0.1 24007 "$T/v.vol" >>"$T/log/server.log" 2>&1 &
server=$!
wait_for 120 "the server to listen" port_answers 24007
mnt=$T/mnt
log=$T/log/mount.log
mkdir "$mnt"
t "the volume is mounted" "$KILN_MOUNT" -l "$log" -p "$T/mount.pid" 127.0.0.1:/v "$mnt"

cat >"$T/work.py" <<'EOS'
"""Uses files that were opened once, until the file `stop` is there. Prints what went wrong."""
import os, sys
root, stop = sys.argv[1:]
os.makedirs(root + "/d/e")
for i in range(50):
    open("%s/d/f%d" % (root, i), "w").write(str(i))
os.chdir(root + "/d/e")
log = open(root + "/log", "a")
data = os.open(root + "/data", os.O_RDWR | os.O_CREAT)
folder = os.open(root + "/d", os.O_RDONLY)
rounds = 0
while not os.path.exists(stop):
    log.write("%d\n" % rounds)
    log.flush()
    os.pwrite(data, b"%08d" % rounds, 8 * rounds)
    assert os.pread(data, 8, 8 * (rounds // 2)) == b"%08d" % (rounds // 2)
    assert len(os.listdir(folder)) == 51
    assert open("../f%d" % (rounds % 50)).read() == str(rounds % 50)
    open("new%d" % rounds, "x").close()
    os.rename("new%d" % rounds, "moved")
    os.unlink("moved")
    os.fsync(data)
    rounds += 1
log.close()
assert open(root + "/log").read() == "".join("%d\n" % i for i in range(rounds))
assert os.path.getsize(root + "/data") == 8 * rounds
print("rounds", rounds)
EOS

switched() {
    [[ $(grep -c '\[mount-switched\]' "$log") == "$1" ]]
}

switch_to() {
    cp "$1" "$T/new.vol"
    mv "$T/new.vol" "$T/v.vol"
    kill -HUP "$server"
    wait_for 240 "switch $2" switched "$2"
}

rounds_go_on() {
    local before
    before=$(stat -c %s "$mnt/log")
    wait_for 240 "the work to go on" bash -c "[[ \$(stat -c %s '$mnt/log') -gt $before ]]"
}

python3 "$T/work.py" "$mnt" "$T/stop" >"$T/work.out" 2>&1 &
work=$!
t "the work begins" wait_for 240 "the work" test -s "$mnt/log"

# Another mount holds a lock, and this mount waits for the lock.
stock=$T/stock
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0
touch "$stock/locked"
exec 6<>"$stock/locked"
flock -x 6
flock -x "$mnt/locked" echo got >"$T/waiter.out" 6>&- 2>&1 &
waiter=$!
waits() {
    grep -q FLOCK /proc/locks || [[ $(cat /proc/$waiter/wchan 2>/dev/null) == *fuse* || $(cat /proc/$waiter/wchan 2>/dev/null) == *request* ]]
}
t "a process waits for a lock" wait_for 240 "the waiter" waits

for i in 1 2 3 4; do
    volfile=$([[ $((i % 2)) == 1 ]] && echo "$T/without.vol" || echo "$T/with.vol")
    t "switch $i: the mount follows a volfile with other layers" switch_to "$volfile" "$i"
    t "switch $i: the work continues" rounds_go_on
done
t "the process still waits for the lock" kill -0 "$waiter"
exec 6>&-
t_here "the waiting process gets the lock when the holder releases it" wait "$waiter"
is "$(cat "$T/waiter.out")" got "the waiting process finished its work"

# Bricks that are not there.
sed "s|remote-port [0-9]*|remote-port 1|" "$T/with.vol" >"$T/new.vol"
mv "$T/new.vol" "$T/v.vol"
kill -HUP "$server"
t "the work continues while the mount waits for new bricks" rounds_go_on
t "the mount does not follow a volfile whose bricks are down, and logs that" \
    wait_for 240 "the line" grep -q 'are not there.*mount-change-not-followed' "$log"
t "the work continues on the old graph" rounds_go_on
touch "$T/stop"
t_here "no call of the work failed" wait "$work"
diag "$(cat "$T/work.out")"

# The brick comes back at another port.
exec 5>>"$mnt/open"
echo one >&5
daemon=${brick_daemon[${volume_bricks[v]}]}
mount_end "$stock"
daemon_stop "$daemon"
daemon_port[$daemon]=$next_port
daemon_start "$daemon" 5>&-
volfile_bare v "$(volume_specs v)" >"$T/moved.vol"
t "the mount follows a brick to another port" switch_to "$T/moved.vol" 5
echo two >&5
is "$(tr '\n' ' ' <"$mnt/open")" "one two " "a file opened before the switches is still open"
exec 5>&-

umount "$mnt"
wait_for 240 "kiln-mount to end" process_gone "$(cat "$T/mount.pid")"
t "the mount ended with status 0" grep -q "exit status 0" "$log"
t_not "the mount leaked no object" grep -E 'graph-audit|graph-inodes-left|fuse-audit' "$log"
kill "$server"
