#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln upgrade replaces the program of a running kilnd while a kiln mount without --hard and a stock mount work on two volumes:
# writers of synchronous and buffered records, a holder of an fcntl lock, a process that waits for the lock, an open file that was
# removed, and a listing of a folder that has begun. No call fails, each acknowledged record is there, the lock is never held twice,
# and the process id stays. A program that does not start, and one with another format of saved state, are refused, and kilnd serves
# on. A kilnd whose saved state is cut ends, and the mounts reach the next kilnd.
# Covers: bricks/upgrade.c, rpc/transport/saved.c, xlators/protocol/server/saved.c, xlators/features/locks/saved.c, cli/upgrade.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/front.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
upgrades=${KILN_UPGRADES:-5}

t_here "kilnd starts" front_start
mkdir "$T/b"
for vol in one two; do
    t "volume $vol is made" kiln volume create "$vol" replica 2 "$T/b/$vol"{1,2}
    t "volume $vol is started" kiln volume start "$vol"
done
work=$(dirname "$0")/upgrade_work.py
mkdir "$T/one" "$T/two"
t "a kiln mount" "$KILN_MOUNT" --hard=0 -s localhost --volfile-id=one --log-file="$T/log/kiln-mount.log" "$T/one"
t "a stock mount" front_mount two "$T/two"
pids=()
for mnt in one two; do
    for kind in sync buffered names lock waiter removed listing; do
        python3 "$work" "$kind" "$T/$mnt" "$T/stop" >"$T/log/$mnt-$kind.log" 2>&1 &
        pids+=($!)
    done
done
for mnt in one two; do
    for kind in sync buffered names lock waiter removed listing; do
        wait_for 240 "$kind on $mnt" grep -q ready "$T/log/$mnt-$kind.log"
    done
done
pid=$front_pid
for ((i = 1; i <= upgrades; i++)); do
    t "upgrade $i" kiln upgrade
done
# The unit's command, with the paths of this build.
reload() {
    sed -n "s,^ExecReload=/bin/sh -c '\(.*\)'$,\1,p" "$source_dir/debian/kiln.kilnd.service" |
        sed "s,/usr/sbin/kilnd,$1,; s,kiln upgrade,'$KILN' upgrade," >"$T/reload" && MAINPID=$pid /bin/sh "$T/reload"
}
count_upgrades() {
    grep -c '\[upgraded\]' "$T/log/kilnd.log"
}
t "a reload of the unit without a new program" reload "$(readlink "/proc/$pid/exe")"
is "$(count_upgrades)" "$upgrades" "that reload upgrades nothing"
t "a reload of the unit after the program's file has changed" reload /bin/false
is "$(count_upgrades)" $((upgrades + 1)) "that reload upgrades kilnd"
t_not "a program that does not start is refused" kiln upgrade /bin/false
t_not "a program that is no kilnd is refused" kiln upgrade /bin/echo
printf '#!/bin/sh\necho kiln-saved-state 99\n' >"$T/other"
chmod +x "$T/other"
t "a program with another format of saved state is refused" grep -q 'another format' <<<"$(kiln upgrade "$T/other" 2>&1)"
t "kilnd serves on" kiln list
t "the process is the same" test "$(pgrep -f "state $T/state" | head -n 1)" = "$pid"
touch "$T/stop"
n=0
for mnt in one two; do
    for kind in sync buffered names lock waiter removed listing; do
        t_here "$kind on $mnt ends well" wait "${pids[n++]}"
    done
done

# The new program gets a state that is cut, and ends. The clients connect to the next kilnd, as after a crash.
cat >"$T/cut" <<EOF
#!/bin/sh
case "\$*" in
*--upgrade-check*) echo kiln-saved-state 1 ;;
*) : >/proc/self/fd/\$KILN_SAVED_STATE; exec $KILND "\$@" ;;
esac
EOF
chmod +x "$T/cut"
"$KILN" upgrade "$T/cut" >"$T/log/cut.out" 2>&1 &
cut=$!
t "kilnd ends when the saved state is cut" wait_for 60 "kilnd to end" process_gone "$front_pid"
kill "$cut" 2>/dev/null || true
wait "$cut" || true
{ wait "$front_pid"; } 2>/dev/null || true
t_here "kilnd starts again" front_start
for mnt in one two; do
    t "the mount of $mnt comes back" wait_for 240 "the mount" cat "$T/$mnt/sync"
done
umount "$T/two"
umount "$T/one"
for vol in one two; do
    t "the copies of $vol are equal" bricks_equal "$T/b/${vol}1" "$T/b/${vol}2"
done
t_here "kilnd ends" front_stop
t_not "no call of the log failed" grep -E 'restore-(file|client|layer|cut)|upgrade-failed.*ended' "$T/log/kilnd.log"
