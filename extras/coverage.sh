#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Branch coverage of layers by their own unit tests: a line for each source with lines and branches reached, and a sum for each
# layer. Fails if a unit test fails.
#
#   extras/coverage.sh BUILD-DIR [LAYER...]
#
# BUILD-DIR has the libraries of a finished build (extras/build.sh). Only the layers' sources are compiled for gcov, in a
# temporary folder. Layers by default: xlators/cluster/replicate xlators/cluster/distribute xlators/mount/fuse.
set -euo pipefail

[[ ${1:-} != --help ]] || { sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
[[ $# -ge 1 && -e $1/libglusterfs.a ]] || { echo "usage: coverage.sh BUILD-DIR [LAYER...]" >&2; exit 2; }
build=$(readlink -f "$1")
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/..")
shift
[[ $# -gt 0 ]] || set -- xlators/cluster/replicate xlators/cluster/distribute xlators/mount/fuse
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$root"
shopt -s nullglob
make -s -C "$build" Makefile >"$dir/out" 2>&1 || { cat "$dir/out"; exit 1; }

variable() {
    make -s -C "$build" -f - print <<<"include Makefile
print: ; @echo \$($1)"
}
flags="-std=gnu17 -O0 -g -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DMEM_IN_PROGRAM -I$root/libglusterfs -I$root -I$build
    $(variable KILN_CPPFLAGS) $(variable FUSE_CFLAGS) -pthread -ftls-model=initial-exec"
libraries="$build/libkiln-xlators.a $build/libkiln-rpc.a $build/libglusterfs.a $(variable BASE_LIBS) $(variable FUSE_LIBS)
    $(variable CHECK_LIBS)"

# Prints the object of a source of a test that is no source of the layer (compiled once, without gcov).
# The flags contain several words each.
# shellcheck disable=SC2086
helper() {
    local object=$dir/${1//\//-}.o
    [[ -e $object ]] || gcc $flags -c "$1" -o "$object"
    echo "$object"
}

for layer; do
    objects=$dir/$layer
    mkdir -p "$objects"
    for source in "$layer"/*.c; do
        name=$(basename "$source" .c)
        case $name in test-* | bench-* | fuzz-*) continue ;; esac
        # shellcheck disable=SC2086
        gcc $flags --coverage -fprofile-update=atomic -c "$source" -o "$objects/$name.o"
    done
    for source in "$layer"/test-*.c; do
        name=$(basename "$source" .c) helpers=()
        program=${layer//[\/-]/_}_${name//-/_}
        sources=$(variable "${program}_SOURCES")
        [[ $sources == *"$source"* ]] || continue # a part of other tests
        for part in $sources; do
            case $part in
                *.h) ;;
                "$layer"/test-*) helpers+=("$(helper "$part")") ;;
                "$layer"/*) ;; # a source of the layer
                *) helpers+=("$(helper "$part")") ;;
            esac
        done
        # shellcheck disable=SC2046,SC2086
        gcc --coverage -pthread $(variable "${program}_LDFLAGS") "$objects"/*.o "${helpers[@]}" \
            $libraries -o "$dir/$name"
        "$dir/$name" >"$dir/out" 2>&1 || { cat "$dir/out"; exit 1; }
        echo "$name: $(grep -a Checks: "$dir/out")"
    done
done

python3 - "$dir" "$@" <<'PYTHON'
import glob, json, os, subprocess, sys

top, layers = sys.argv[1], sys.argv[2:]


def reached(gcda):
    """Returns the sums of lines, lines reached, branches and branches reached of a source file."""
    out = subprocess.run(["gcov", "-b", "--json-format", "--stdout", gcda], stdout=subprocess.PIPE, check=True).stdout
    sums = [0, 0, 0, 0]
    for report in filter(None, out.split(b"\n")):
        for file in json.loads(report)["files"]:
            if os.path.basename(file["file"])[:-2] != os.path.basename(gcda)[:-5] or not file["file"].endswith(".c"):
                continue
            for line in file["lines"]:
                sums[0] += 1
                sums[1] += line["count"] > 0
                sums[2] += len(line["branches"])
                sums[3] += sum(branch["count"] > 0 for branch in line["branches"])
    return sums


def show(name, sums):
    lines, lines_reached, branches, branches_reached = sums
    print(f"{name:48} lines {lines_reached:5} of {lines:5} {100 * lines_reached / max(lines, 1):5.1f} %"
          f"   branches {branches_reached:5} of {branches:5} {100 * branches_reached / max(branches, 1):5.1f} %")


for layer in layers:
    total = [0, 0, 0, 0]
    for note in sorted(glob.glob(f"{top}/{layer}/*.gcno")):
        sums = reached(note[:-5] + ".gcda") if os.path.exists(note[:-5] + ".gcda") else reached(note)
        total = [a + b for a, b in zip(total, sums)]
        show(f"{layer}/{os.path.basename(note)[:-5]}.c", sums)
    show(f"{layer}: all", total)
PYTHON
