# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# hunger: limits the memory of a mount's process (RLIMIT_AS) while many processes use the mount.
#
#   hunger_skip_unless_possible     skips the script on a machine that cannot run the test
#   hunger_has PID                  the process's address space, in KiB
#   hunger_limit PID KIB            limits the address space
#   hunger_ends PID
#   hunger_crowd COUNT NAME COMMAND...
#       runs `COMMAND... I` for each I to COUNT side by side; their output is in $T/told.NAME-I, and printed if a command fails

hunger_skip_unless_possible() {
    [[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
    ! grep -q '^SAN_FLAGS = ..*' "$(dirname "$KILN_MOUNT")/Makefile" || skip_all "a sanitizer maps terabytes"
    command -v prlimit >/dev/null || skip_all "there is no prlimit"
}

hunger_has() {
    proc_status_sum VmSize "$1"
}

hunger_limit() {
    prlimit --pid "$1" --as=$(($2 * 1024)):
}

hunger_ends() {
    prlimit --pid "$1" --as=unlimited:
}

hunger_crowd() {
    local count=$1 name=$2 i status=0
    local -a all=()
    shift 2
    for ((i = 1; i <= count; i++)); do
        "$@" "$i" >"$T/told.$name-$i" 2>&1 &
        all+=($!)
    done
    for i in "${all[@]}"; do
        wait "$i" || status=1
    done
    [[ $status -eq 0 ]] || diag "$(cat "$T/told.$name-"*)"
    return "$status"
}
