#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# format.sh: formats C sources: clang-format breaks lines over 110 columns, and only those lines; banners become
# `/* ---- TITLE --...-- */` of 100 columns, and a comment that makes its line too long moves above the line.
# Tables (*.def, and between `clang-format off` and `on`) stay as they are. No comment is reflowed, because a table
# in a comment would become running text: the script names comments that are too long; wrap them by hand.
#
#   extras/format.sh [FILE...]      default: all *.c, *.h, *.def and *.inc that git knows
#
# tests/check/format reports the remaining faults.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
[[ $# -gt 0 ]] || mapfile -t files < <(git ls-files '*.c' '*.h' '*.def' '*.inc')
[[ $# -eq 0 ]] || files=("$@")
perl -CSD -i -pe '
    if (m{^(\s*)/\* ?-{2,} ?(.*?\S) -{2,} ?\*/$}) {
        my $head = "$1/* ---- $2 ";
        my $n = 97 - length $head;
        $_ = $head . ("-" x ($n > 2 ? $n : 2)) . " */\n";
    }
    $is_table = 0 if m{clang-format on} || $. == 1;
    $is_table = 1 if m{clang-format off};
    close ARGV if eof;
    if (!$is_table && $ARGV !~ /\.(def|inc)$/ && length > 111 && m~^(\s*)((?![#}*/]|case |default:).*?\S)\s*(/\* .*\*/)$~ &&
        index($2, "/*") < 0) {
        $_ = "$1$3\n$1$2\n";
    }' "${files[@]}"
for file in "${files[@]}"; do
    # A broken line may leave another one too long.
    for pass in 1 2 3; do
        mapfile -t lines < <(awk '{ gsub(/[\200-\277]/, "") } length($0) > 110 { print "--lines=" NR ":" NR }' "$file")
        [[ ${#lines[@]} -gt 0 && $file != *.def ]] || break
        clang-format -i "${lines[@]}" "$file"
    done
done
too_long=$(awk 'FNR == 1 { is_table = 0 } /clang-format off/ { is_table = 1 } /clang-format on/ { is_table = 0 }
    { gsub(/[\200-\277]/, "") } !is_table && FILENAME !~ /\.def$/ && length($0) > 110 { print FILENAME ":" FNR ": " length($0) " columns" }
    ' "${files[@]}")
if [[ -n $too_long ]]; then
    echo "$too_long"
    echo "format.sh: wrap these by hand"
    exit 1
fi
