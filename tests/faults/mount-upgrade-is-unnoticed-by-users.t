#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln upgrade mounts replaces the program of a running kiln-mount, which has its sandbox, while programs work in a mount:
# writers of synchronous and buffered records, holders of fcntl and flock locks, a process that waits for a lock, an open file that
# was removed, a reader that follows a growing file, and a listing of a folder that has begun. No call fails, each acknowledged
# record is there, no lock is ever held twice, and the process id stays. A program that does not start, and one with another format
# of saved state, are refused, and the mount goes on. A mount whose saved state is cut dies.
# Covers: mount/upgrade.c, xlators/mount/fuse/saved.c, xlators/protocol/client/saved.c, rpc/client/rpc-saved.c, cli/upgrade-mounts.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
upgrades=${KILN_UPGRADES:-5}
program=$T/bin/kiln-mount
work=$(dirname "$0")/upgrade_work.py
kinds="sync buffered names lock waiter flock flockwaiter removed tail listing"

# install_program FILE: as a package puts a newer file in place of the running one
install_program() {
    cp "$1" "$program.new" && mv "$program.new" "$program"
}

# The words of the mount's process in $T/log/VOL.log say that each upgrade has carried all files.
no_file_is_lost() {
    ! grep -E 'fuse-file-lost|[1-9][0-9]* are lost|client-lock-lost|mount-upgrade-failed' "$T/log/one.log"
}

t_here "kilnd starts" front_start
mkdir -p "$T/b" "$T/one" "$T/bin"
t "the volume is made" kiln volume create one replica 2 "$T/b/one"{1,2}
t "the volume is started" kiln volume start one
t "the program is installed" install_program "$KILN_MOUNT"
t "the program names its format" grep -q '^kiln-mount-saved-state 1$' <<<"$("$program" --upgrade-check)"
t "a kiln mount" "$program" --hard=0 -s localhost --volfile-id=one --log-file="$T/log/one.log" "$T/one"
pid=$(pgrep -f "^$program " | head -n 1)
pids=()
for kind in $kinds; do
    python3 "$work" "$kind" "$T/one" "$T/stop" >"$T/log/$kind.out" 2>&1 &
    pids+=($!)
done
for kind in $kinds; do
    wait_for 240 "$kind" grep -q ready "$T/log/$kind.out"
done
for ((i = 1; i <= upgrades; i++)); do
    install_program "$KILN_MOUNT"
    t "upgrade $i" kiln upgrade mounts "$pid"
done
printf '#!/bin/sh\nexit 1\n' >"$T/other"
chmod +x "$T/other"
t "a program that does not start is installed" install_program "$T/other"
t_not "a program that does not start is refused" kiln upgrade mounts "$pid"
printf '#!/bin/sh\necho kiln-mount-saved-state 99\n' >"$T/other"
t "a program with another format is installed" install_program "$T/other"
t "a program with another format of saved state is refused" grep -q 'another format' \
    <<<"$(kiln upgrade mounts "$pid" 2>&1)"
t "the mount goes on" stat "$T/one/sync"
t "the process is the same" test "$(pgrep -f "^$program " | head -n 1)" = "$pid"
touch "$T/stop"
n=0
for kind in $kinds; do
    t_here "$kind ends well" wait "${pids[n++]}"
done
t "no file and no lock is lost" no_file_is_lost

# The new program gets a state that is cut, and ends: as after a crash, the mount point is dead.
cat >"$T/cut" <<EOF
#!/bin/sh
case "\$*" in
*--upgrade-check*) echo kiln-mount-saved-state 1 ;;
*) : >/proc/self/fd/\$KILN_MOUNT_SAVED_STATE; exec $KILN_MOUNT "\$@" ;;
esac
EOF
chmod +x "$T/cut"
t "a program that cuts the state is installed" install_program "$T/cut"
t_not "an upgrade with a cut state fails" kiln upgrade mounts "$pid"
t "the process ends" wait_for 60 "kiln-mount to end" process_gone "$pid"
t_not "the mount point is dead" stat "$T/one/sync"
t "a new mount takes the mount point back" "$KILN_MOUNT" --hard=0 -s localhost --volfile-id=one \
    --log-file="$T/log/again.log" "$T/one"
t "the file is there" stat "$T/one/sync"
umount "$T/one"
t "the copies are equal" bricks_equal "$T/b/one1" "$T/b/one2"
