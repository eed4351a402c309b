#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln upgrade replaces the program of a kilnd that has mounted a replicated volume in its own process, under its sandbox, while
# programs work in the mount and in a stock mount of the same volume: writers of synchronous and buffered records, holders of fcntl
# and flock locks, processes that wait for these locks, an open file that was removed, a reader that follows a growing file, and a
# listing of a folder that has begun. No call fails, each acknowledged record is there, no lock is ever held twice, process id and
# mount stay, and calls go to the bricks without messages as before. An answer of the format without mounts is refused. A kilnd whose
# saved state is cut ends, and the next kilnd mounts again.
# Covers: mount/inside.c, glusterfsd/upgrade.c, rpc/client/rpc-saved.c, rpc/server/inside.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
upgrades=${KILN_UPGRADES:-5}
work=$(dirname "$0")/../faults/upgrade_work.py
# The listing is first, because its 300 files take long to make beside the others. The stock mount has few workers, because all of them
# work without a pause.
declare -A kinds=([inside]="listing sync buffered names lock waiter flock flockwaiter removed tail" [stock]="listing sync lock waiter")

export KILN_SOCKET=$T/kilnd.socket
mnt=$T/mnt other=$T/other
mkdir -p "$T/b" "$mnt" "$other"
t_here "kilnd starts" front_start --management-socket="$KILN_SOCKET" --inside-mounts
t "the volume is made" kiln volume create one replica 2 "$T/b/one"{1,2}
t "the volume is started" kiln volume start one
t "kilnd mounts the volume" kiln mount one "$mnt" -o inside
end_mount() { umount -l "$mnt" 2>/dev/null; }
at_end+=(end_mount)
t "a stock mount" front_mount one "$other"

clients_inside() {
    grep -c '^inside=1' "$(dump_take "$front_pid" "$T")"
}
is "$(clients_inside)" 2 "the mount calls both bricks inside of kilnd"

mkdir "$mnt/inside" "$mnt/stock"
pids=()
work_in() { # FOLDER NAME: starts each kind of work when the one before is under way
    local kind
    for kind in ${kinds[$2]}; do
        python3 "$work" "$kind" "$1" "$T/stop" >"$T/log/$2-$kind.out" 2>&1 &
        pids+=($!)
        wait_for 240 "$kind in $2" grep -q ready "$T/log/$2-$kind.out"
    done
}
work_in "$other/stock" stock
work_in "$mnt/inside" inside
inode=$(stat -c %i "$mnt/inside") pid=$front_pid
for ((i = 1; i <= upgrades; i++)); do
    t "upgrade $i" kiln upgrade
done
t "kilnd says that the mount goes on" grep -q '^1 mounts inside of kilnd go on' <<<"$(kiln upgrade)"
is "$(clients_inside)" 2 "the mount calls both bricks inside of kilnd again"
is "$(stat -c %i "$mnt/inside")" "$inode" "a folder has the inode number of before"
t "the process is the same" kill -0 "$pid"
printf '#!/bin/sh\necho kiln-saved-state 1\n' >"$T/old"
chmod +x "$T/old"
t "a program that would lose the mounts is refused" grep -q 'another format' <<<"$(kiln upgrade "$T/old" 2>&1)"
touch "$T/stop"
n=0
for dir in stock inside; do
    for kind in ${kinds[$dir]}; do
        t_here "$kind in $dir ends well" wait "${pids[n++]}"
    done
done
nothing_is_lost() {
    ! grep -E 'restore-(file|client|layer|cut)|fuse-file-lost|[1-9][0-9]* mounts are lost|client-lock-lost|rpc-path-lost' \
        "$T/log/kilnd.log"
}
t "no file, lock, mount or path is lost" nothing_is_lost
echo old >"$mnt/after" && echo new >"$mnt/more"
is "$(cat "$other/after" "$other/more" | tr '\n' ' ')" "old new " "the stock mount reads files written after the upgrades"

# The new program gets a state that is cut, and ends: as after a crash, the next kilnd mounts again.
cat >"$T/cut" <<EOF
#!/bin/sh
case "\$*" in
*--upgrade-check*) echo kiln-saved-state 2 ;;
*) : >/proc/self/fd/\$KILN_SAVED_STATE; exec $KILND "\$@" ;;
esac
EOF
chmod +x "$T/cut"
umount "$other"
"$KILN" upgrade "$T/cut" >"$T/log/cut.out" 2>&1 &
cut=$!
t "kilnd ends when the saved state is cut" wait_for 60 "kilnd to end" process_gone "$front_pid"
kill "$cut" 2>/dev/null || true
wait "$cut" || true
{ wait "$front_pid"; } 2>/dev/null || true
t_here "kilnd starts again" front_start --management-socket="$KILN_SOCKET" --inside-mounts
reads() { [[ $(cat "$mnt/after" 2>/dev/null) == old ]]; }
t "the next kilnd mounts the volume again" wait_for 240 "the mount to be back" reads
t "the mount is unmounted" umount "$mnt"
t "the copies are equal" bricks_equal "$T/b/one1" "$T/b/one2"
t_here "kilnd ends" front_stop
