#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# run.sh: installs missing packages, builds, runs the unit tests and the end-to-end tests.
#
#   tests/run.sh [--long] [--only PATTERN] [--no-install] [--once] [--asan | --tsan] [--stock] [--stock-version N]
#
#   --long           also the scripts whose names end in -long.t
#   --only PATTERN   only tests whose path matches the extended regular expression
#   --no-install     do not check for packages
#   --once           no second attempt (else up to three programs and three scripts that fail beside other tests run
#                    once more, alone, and are named as unsteady when they pass)
#   --asan, --tsan   with a build of its own under AddressSanitizer and UBSan, or ThreadSanitizer
#   --stock          the end-to-end tests alone, with stock glusterfsd in kilnd's place: tests the tests
#   --stock-version N
#                    run only the scripts in tests/access, cli, client, distribute, management, mount and replicate (or
#                    those of --only), with the stock programs of GlusterFS N: 11 (11.1) or 11.2. The scripts run in a Debian
#                    that tests/lib/stock-root.sh makes once
#
# Unit tests are the programs of `make check`, counted check by check; end-to-end tests are the TAP scripts
# tests/*/*.t, counted line by line. The last line is `N passed, N failed`; status 1 when anything failed.
set -uo pipefail

tests_dir=$(dirname "$(readlink -f "$0")")
source_dir=$(dirname "$tests_dir")
build_dir=$source_dir/build
configure_options=()
long=no
only=
stock_version=
install=yes
units=yes
seconds=1200
again=3
export BRICKD=kiln

while [[ $# -gt 0 ]]; do
    case $1 in
    --long) long=yes; seconds=3600; shift ;;
    --only) only=${2:?}; shift 2 ;;
    --no-install) install=no; shift ;;
    --once) again=0; shift ;;
    --asan) build_dir=$source_dir/build-asan; configure_options=(--enable-asan); shift ;;
    --tsan) build_dir=$source_dir/build-tsan; configure_options=(--enable-tsan); shift ;;
    --stock) BRICKD=stock; units=no; shift ;;
    --stock-version) stock_version=${2:?}; units=no; shift 2 ;;
    -h | --help) sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "run.sh: no option $1; see the head of $0" >&2; exit 2 ;;
    esac
done
# A live fuzz or a soak of an hour takes an hour and its setup and checks.
for minutes in "${KILN_FUZZ_MINUTES:-0}" "${KILN_SOAK_MINUTES:-0}" "${KILN_MANGLE_MINUTES:-0}"; do
    minutes=${minutes%.*}
    seconds=$((seconds + 60 * ${minutes:-0}))
done
[[ -z $stock_version ]] || only=${only:-^tests/(access|cli|client|distribute|management|mount|replicate)/}
only=${only:-.}
export KILN_BUILD=$build_dir
export ASAN_OPTIONS=${ASAN_OPTIONS:-exitcode=99:detect_leaks=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-exitcode=99:second_deadlock_stack=1}

passed=0
failed=0

finish() {
    echo "$passed passed, $failed failed"
    [[ $failed -eq 0 && $passed -gt 0 ]]
    exit
}

prepare() {
    if [[ $install == yes ]]; then
        "$source_dir/extras/install-deps.sh" build test || return 1
    fi
    if [[ -n $stock_version ]]; then
        [[ $install == no ]] || "$source_dir/extras/install-deps.sh" stock-version || return 1
        local root
        root=$("$tests_dir/lib/stock-root.sh" "$stock_version") || return 1
        echo "the stock programs are those of $root"
        export KILN_STOCK_VERSION=$stock_version
    fi
    [[ $BRICKD == kiln ]] || return 0
    echo "building in $build_dir"
    "$source_dir/extras/build.sh" "$build_dir" "${configure_options[@]}"
}

# A unit test's log ends with Check's own count, or is TAP; a program that says neither counts by its exit status.
count_unit_log() {
    awk '
        /^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+/ {
            gsub(/[^0-9 ]/, " "); good += $2 - $3 - $4; bad += $3 + $4; seen = 1
        }
        /^ok / && !seen { tap_good++ }
        /^not ok / && !seen { tap_bad++ }
        END { print (seen ? good : tap_good) + 0, (seen ? bad : tap_bad) + 0 }' "$1"
}

# Sets `good`, `bad` and `result` for a program that ran.
read_unit() {
    good=0
    bad=0
    result=$(awk '$1 == ":test-result:" { print $2; exit }' "$build_dir/$1.trs" 2>/dev/null)
    [[ ! -e $build_dir/$1.log ]] || read -r good bad < <(count_unit_log "$build_dir/$1.log")
    case $result in
    PASS) [[ $((good + bad)) -gt 0 ]] || good=1 ;;
    SKIP) good=0; bad=0 ;;
    *) [[ $bad -gt 0 ]] || bad=1 ;;
    esac
}

say_why() {
    if [[ -e $build_dir/$1.log ]]; then
        tail -n 20 "$build_dir/$1.log" | sed 's/^/    /'
    else
        grep -E 'error:|Error ' "$build_dir/check.log" | head -n 10 | sed 's/^/    /'
    fi
}

# Whether a program that failed beside the others passes alone.
passes_alone() {
    rm -f "$build_dir/$1.trs" "$build_dir/$1.log"
    make -C "$build_dir" check TESTS="$1" >>"$build_dir/check.log" 2>&1
    read_unit "$1"
    [[ $result == PASS ]]
}

run_units() {
    local name result good bad
    local -a programs failures=()
    echo "unit tests"
    # The Makefile lists the programs. make builds them, and a failing program must not stop the other programs.
    mapfile -t programs < <(make -s -C "$build_dir" -f Makefile -f - print-tests 2>/dev/null \
        <<<$'print-tests:\n\t@printf "%s\\n" $(TESTS)\n' | grep -E -- "$only")
    [[ ${#programs[@]} -gt 0 ]] || { echo "  none match"; return; }
    (cd "$build_dir" && find . -name '*.trs' -delete)
    make -C "$build_dir" -k -j$(($(nproc) * 3 / 2)) check TESTS="${programs[*]}" >"$build_dir/check.log" 2>&1
    for name in "${programs[@]}"; do
        read_unit "$name"
        if [[ $bad -gt 0 ]]; then
            echo "  failed: $name (${result:-not built})"
            say_why "$name"
            failures+=("$name")
            continue
        fi
        [[ $result != SKIP ]] || echo "  skipped: $name"
        passed=$((passed + good))
    done
    for name in "${failures[@]}"; do
        read_unit "$name"
        if [[ ${#failures[@]} -le $again ]] && passes_alone "$name"; then
            echo "  unsteady: $name failed beside others and passed alone"
        fi
        passed=$((passed + good))
        failed=$((failed + bad))
    done
    echo "  ${#programs[@]} programs: $passed checks passed, $failed failed"
}

run_scripts() {
    local script counts jobs good=0 bad=1
    local -a scripts=()
    while IFS= read -r script; do
        [[ $script == *-long.t && $long == no ]] || scripts+=("$script")
    done < <(cd "$source_dir" && find tests -name '*.t' -perm -u+x | grep -E -- "$only" | sort)
    [[ ${#scripts[@]} -gt 0 ]] || return
    echo "end-to-end tests"
    counts=$(mktemp)
    # The scripts wait more than they compute: four at a time left 20 % of two cores idle.
    jobs=$(($(nproc) * 5 / 2))
    (cd "$source_dir" && perl "$tests_dir/lib/harness.pl" "$counts" "$jobs" "$seconds" "$again" "${scripts[@]}")
    [[ ! -s $counts ]] || read -r good bad <"$counts"
    rm -f "$counts"
    passed=$((passed + good))
    failed=$((failed + bad))
}

if ! prepare; then
    echo "run.sh: nothing could be tested" >&2
    failed=$((failed + 1))
    finish
fi
[[ $units == no ]] || run_units
run_scripts
finish
