#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kilnd, kiln-mount and kiln-heal give up capabilities and install a filter of system calls, in all threads. Code that runs
# in kilnd (sandbox-preload.c) gets EPERM for other calls, the log has the name of the call, and the brick serves on. Hook
# scripts run, with the rights that kilnd keeps. --sandbox=off and log change nothing for any call. A glusterd's kilnd has
# the same sandbox.
# Covers: daemon/sandbox.c, daemon/sandbox-calls.c, libglusterfs/event/spawner.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "the sandbox is Kiln's"
grep -q '^Seccomp_filters:' /proc/self/status || skip_all "this kernel has no seccomp filters"
refusals_expected=yes # the check at the end of each script

mnt=$T/mnt
gcc -shared -fPIC -o "$T/preload.so" "$tests_dir/faults/sandbox-preload.c" -ldl
filters_before=$(awk '$1 == "Seccomp_filters:" { print $2 }' /proc/self/status)

all=$(awk '$1 == "CapEff:" { print $2 }' /proc/self/status)
# The capabilities with these numbers, as /proc prints them, without those that this script does not have.
mask() {
    local number sum=0
    for number in "$@"; do
        sum=$((sum | 1 << number))
    done
    printf '%016x' $((sum & 0x$all))
}
# Numbers of linux/capability.h: CHOWN DAC_OVERRIDE FOWNER FSETID NET_BIND_SERVICE SYS_ADMIN SYS_RESOURCE MKNOD SETFCAP
of_kilnd=$(mask 0 1 3 4 10 21 24 27 31)
of_mount=$(mask 1 10 19 21 24) # with SYS_PTRACE
of_healer=$(mask 10 24)

# Lines KEY VALUE, each once, of all threads of a process.
status_of() {
    awk '/^(CapEff|NoNewPrivs|Seccomp):/ { print $1, $2 }' /proc/"$1"/task/*/status | sort -u
}
is_confined() { # PID CAPABILITIES DESC
    is "$(status_of "$1")" "CapEff: $2
NoNewPrivs: 1
Seccomp: 2" "$3"
}

call_of_kilnd() { # NAME: prints the error of mkdir
    mkdir "$mnt/call-$1" 2>&1 | sed 's/.*: //'
}
logged() {
    grep -qE "$1" "$T/log/v-kiln.log"
}

volume_new v 1x1
start_with() { # [WORD...] for kilnd
    kilnd_options=("$@")
    # The sanitizer's library wants to be the first one.
    LD_PRELOAD=$T/preload.so ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 volume_start v
}

start_with
t_here "the volume is mounted by kiln-mount" mount_kiln v "$mnt"
is_confined "${daemon_pid[v-kiln]}" "$of_kilnd" "each thread of kilnd has the capabilities of a brick and a filter"
is_confined "${mount_pid[$mnt]}" "$of_mount" "each thread of kiln-mount has the capabilities of a mount and a filter"
is "$(call_of_kilnd unshare)" "Operation not permitted" "unshare(2) is refused in kilnd"
t "kilnd's log names the call" wait_for 60 "the line" logged 'system call unshare .*was refused.*sandbox-refused'
for name in execve mount bpf io_uring_setup ptrace clone; do
    # A sanitizer traces its process at the end, so its builds allow the calls for this.
    [[ ${ASAN_OPTIONS:-}${TSAN_OPTIONS:-} != *exitcode* || $name != @(ptrace|clone) ]] || continue
    is "$(call_of_kilnd $name)" "Operation not permitted" "$name(2) is refused in kilnd"
    t "kilnd's log names $name" wait_for 60 "the line" logged "system call $name .*sandbox-refused"
done
is "$(call_of_kilnd unknown)" "Function not implemented" "a call without a name is unknown, as in an old kernel"
t "the brick serves on" eval "echo data >'$mnt/file' && mkdir '$mnt/dir' && mknod '$mnt/device' c 1 3 &&
    chown 1000:1000 '$mnt/file' && setfattr -n user.x -v y '$mnt/file'"
t "a statedump is written" eval "kill -USR1 ${daemon_pid[v-kiln]} && wait_for 60 'the dump' eval 'ls $T/*.dump.* >$T/dumps'"
t_here "kiln-mount ends" mount_end "$mnt"
t_here "kilnd ends" volume_stop v

for mode in off log; do
    filters=$filters_before
    [[ $mode == off ]] || filters=$((filters + 1))
    start_with --sandbox=$mode
    mount_kiln v "$mnt" --sandbox=$mode
    for pid in "${daemon_pid[v-kiln]}" "${mount_pid[$mnt]}"; do
        is "$(status_of "$pid" | head -n 1)" "CapEff: $all" "$(cat "/proc/$pid/comm") with --sandbox=$mode keeps all capabilities"
        is "$(awk '$1 == "Seccomp_filters:" { print $2 }' "/proc/$pid/status")" $filters \
            "$(cat "/proc/$pid/comm") with --sandbox=$mode has $((filters - filters_before)) filters"
    done
    is "$(call_of_kilnd unshare)" "Invalid cross-device link" "unshare(2) runs with --sandbox=$mode"
    mount_end "$mnt"
    volume_stop v
done

# Volumes of kilnd's own: hook scripts and kiln-heal.
mkdir -p "$T/b"
front_start
is_confined "$front_pid" "$of_kilnd" "kilnd with volumes of its own has the same rights"
mkdir -p "$T/state/hooks/start/post"
cat >"$T/state/hooks/start/post/S10look" <<'HOOK'
#!/bin/bash
out=$(dirname "$0")/../../../../hook
awk '/^(CapEff|NoNewPrivs|Seccomp):/ { print $1, $2 }' /proc/self/status | sort >"$out"
echo "parent: $(cat "/proc/$PPID/comm")" >>"$out"
(umask; python3 -c 'import subprocess; print(subprocess.run(["date", "+date"], capture_output=True).stdout.decode().strip())') >>"$out"
unshare --net true 2>/dev/null || echo "unshare: $?" >>"$out"
HOOK
chmod 700 "$T/state/hooks/start/post/S10look"
t "a replicated volume is created" kiln volume create r replica 2 "$T/b/1" "$T/b/2"
t "the volume is started" kiln volume start r
healer() {
    pgrep -P "$front_pid" -x kiln-heal
}
t "kiln-heal runs, as a child of kilnd" wait_for 60 "kiln-heal" healer
healer_is_confined() {
    [[ $(status_of "$(healer)") == "CapEff: $of_healer"*"Seccomp: 2" ]]
}
t "each thread of kiln-heal has the capabilities of a client and a filter" wait_for 60 "its sandbox" healer_is_confined
is "$(cat "$T/hook")" "CapEff: $of_kilnd
NoNewPrivs: 1
Seccomp: 2
parent: kilnd
0077
date
unshare: 1" "a hook script runs programs with the rights of kilnd, and gets EPERM for other calls"
is "$(pgrep -cx kiln-spawner)" 1 "the process that starts programs is there"
front_kill
gone() {
    ! pgrep -x 'kiln-spawner|kiln-heal'
}
t "its process and kiln-heal end with a killed kilnd" wait_for 60 "their end" gone
front_start --sandbox=off
is "$(status_of "$front_pid" | tail -n 1)" "Seccomp: $((filters_before > 0 ? 2 : 0))" "--sandbox=off: no filter with volumes of its own"
t "--sandbox=off: kiln-heal runs" wait_for 60 "kiln-heal" healer
is "$(pgrep -cx kiln-spawner)" 0 "--sandbox=off: kilnd starts programs itself"
front_stop

# The configuration file.
echo 'sandbox = off' >"$T/kilnd.conf"
front_start --config="$T/kilnd.conf"
is "$(status_of "$front_pid" | tail -n 1)" "Seccomp: $((filters_before > 0 ? 2 : 0))" "the configuration file sets the mode"
front_stop
echo 'sandbox = maybe' >"$T/kilnd.conf"
t "a wrong mode is refused with the line" fails_with "kilnd.conf:1: sandbox = maybe: expected on, off or log" \
    "$KILND" --state="$T/state" --config="$T/kilnd.conf"

# A glusterd starts kilnd with no option about the sandbox.
LD_PRELOAD=$T/preload.so ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 glusterd_bricks_start
gl_create g 1x1 >/dev/null
t "a volume of glusterd starts" gl volume start g
is_confined "$(glusterd_brick_pids)" "$of_kilnd" "each thread of a glusterd's kilnd has the capabilities of a brick and a filter"
gl_mount g "$mnt"
for name in unshare mount execve; do
    is "$(call_of_kilnd $name)" "Operation not permitted" "$name(2) is refused in a glusterd's kilnd"
done
t "the log of glusterd's brick names the call" wait_for 60 "the line" \
    grep -qE 'system call unshare .*was refused.*sandbox-refused' /var/log/glusterfs/bricks/*.log
t "the brick of glusterd serves on" bash -c "echo data >'$mnt/file' && grep -q data '$mnt/file'"
umount "$mnt"
gl volume stop g >/dev/null
