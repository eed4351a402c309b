# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# hunger: a mount's process may not have more memory than this (RLIMIT_AS), while many work.
#
#   hunger_skip_unless_possible     ends the script where this cannot be tested
#   hunger_has PID                  its address space, in KiB
#   hunger_limit PID KIB            it may have so much
#   hunger_ends PID
#   hunger_crowd COUNT NAME COMMAND...
#       runs `COMMAND... I` for each I to COUNT side by side; what they say is in $T/told.NAME-I, and printed if one fails

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
