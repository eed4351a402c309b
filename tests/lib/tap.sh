# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# tap: the output of a test script for prove(1).
#
#   t      DESC CMD...   passes when CMD succeeds; else shows the output of CMD
#   t_here DESC CMD...   as t, but CMD runs in this shell and may use its children and variables
#   t_not  DESC CMD...   passes when CMD fails with an exit status below 126 (a missing program is no pass)
#   fails_with TEXT CMD...   succeeds when CMD fails and prints TEXT; for t
#   is     GOT WANT DESC passes when the two strings are equal
#   include DESC CMD...  CMD prints `ok - ...` and `not ok - ...` lines: each counts as a test of this script
#   skip_all WHY         the whole script cannot run here
#   diag   TEXT...       a remark
#
# The plan is printed last, by tap_finish, which sandbox.sh calls when the script ends. A script that dies half-way
# prints no plan and thus fails.

tap_count=0
tap_failed=0

tap_ok() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1"
}

tap_not_ok() {
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $1"
}

diag() {
    echo "$*" | sed 's/^/# /'
}

t() {
    local desc=$1 out status=0
    shift
    out=$("$@" 2>&1) || status=$?
    if [[ $status -eq 0 ]]; then
        tap_ok "$desc"
        return 0
    fi
    tap_not_ok "$desc"
    diag "exit status $status: $*"
    [[ -z $out ]] || diag "$(tail -n 40 <<<"$out")"
    return 0
}

t_here() {
    local desc=$1 status=0 file
    shift
    file=$(mktemp)
    "$@" >"$file" 2>&1 || status=$?
    if [[ $status -eq 0 ]]; then
        tap_ok "$desc"
    else
        tap_not_ok "$desc"
        diag "exit status $status: $*"
        diag "$(tail -n 40 "$file")"
    fi
    rm -f "$file"
}

t_not() {
    local desc=$1 out status=0
    shift
    out=$("$@" 2>&1) || status=$?
    if [[ $status -ne 0 && $status -lt 126 ]]; then
        tap_ok "$desc"
        return 0
    fi
    tap_not_ok "$desc"
    diag "exit status $status, a failure was expected: $*"
    [[ -z $out ]] || diag "$(tail -n 40 <<<"$out")"
    return 0
}

fails_with() {
    local text=$1 out
    shift
    if out=$("$@" 2>&1); then
        echo "succeeded: $*"
        return 1
    fi
    [[ $out == *"$text"* ]] || { echo "$out"; return 1; }
}

is() {
    if [[ $1 == "$2" ]]; then
        tap_ok "$3"
        return 0
    fi
    tap_not_ok "$3"
    diag "got:  $1"
    diag "want: $2"
    return 0
}

include() {
    local desc=$1 line status_file
    shift
    status_file=$(mktemp)
    while IFS= read -r line; do
        case $line in
        'ok - '*) tap_ok "${line#ok - }" ;;
        'not ok - '*) tap_not_ok "${line#not ok - }" ;;
        *) echo "# ${line#\# }" ;;
        esac
    done < <(
        status=0
        "$@" 2>&1 || status=$?
        echo "$status" >"$status_file"
    )
    is "$(cat "$status_file")" 0 "$desc"
    rm -f "$status_file"
}

skip_all() {
    echo "1..0 # SKIP $*"
    tap_skipped=yes
    exit 0
}

tap_finish() {
    [[ ${tap_skipped:-} == yes ]] && return 0
    echo "1..$tap_count"
    [[ $tap_failed -eq 0 && $tap_count -gt 0 ]]
}
