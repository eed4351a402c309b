# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# proc: the kernel's counters for a set of processes. Each function takes process ids and prints the sum.
#
#   proc_cpu_ms PID...   user and system time of all present and past threads, in milliseconds
#   proc_rss_kb PID...   resident memory
#   proc_threads PID...
#   proc_fds PID...

proc_cpu_ms() {
    local pid stat sum=0
    local -a field
    for pid in "$@"; do
        stat=$(<"/proc/$pid/stat")
        # The second field is the name in parentheses and may hold blanks; the state follows.
        read -r -a field <<<"${stat##*) }"
        sum=$((sum + field[11] + field[12]))
    done
    echo $((sum * 1000 / $(getconf CLK_TCK)))
}

proc_status_sum() {
    local key=$1 pid sum=0 value
    shift
    for pid in "$@"; do
        value=$(awk -v key="$key:" '$1 == key { print $2 }' "/proc/$pid/status")
        sum=$((sum + value))
    done
    echo "$sum"
}

proc_rss_kb() {
    proc_status_sum VmRSS "$@"
}

proc_threads() {
    proc_status_sum Threads "$@"
}

proc_fds() {
    local pid sum=0
    local -a names
    for pid in "$@"; do
        names=("/proc/$pid/fd/"*)
        sum=$((sum + ${#names[@]}))
    done
    echo "$sum"
}
