# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# dump: statedumps.
#
#   dump_take PID DIR        has the process write a statedump to DIR and prints the file's name
#   dump_pools FILE          the pools of a dump as a table
#   children_up N [MOUNT [DIR]]
#                            is a child up for the clusters of the kiln-mount at MOUNT (default: $mnt) N times? The
#                            process dumps to DIR (default: $T/dumps)
#
# A process writes the dump under another name and renames the complete file, so a file that has its name is
# complete.

dump_exists() {
    local file
    for file in "$1"/*."$2".dump.*; do
        [[ -e $file ]] && return 0
    done
    return 1
}

dump_take() {
    local pid=$1 dir=$2 file
    # Two dumps within a second would have the same name.
    rm -f "$dir"/*."$pid".dump.*
    kill -USR1 "$pid"
    wait_for 120 "a statedump of process $pid" dump_exists "$dir" "$pid" || return 1
    for file in "$dir"/*."$pid".dump.*; do
        echo "$file"
    done
}

dump_pools() {
    "$source_dir/extras/pools-table.sh" "$1"
}

children_up() {
    local file
    file=$(dump_take "${mount_pid[${2:-$mnt}]}" "${3:-$T/dumps}") || return 1
    [[ $(grep -c '^child_up\[.*=1$' "$file") -eq $1 ]]
}
