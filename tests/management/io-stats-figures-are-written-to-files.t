#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# With diagnostics.stats-dump-interval a brick writes its figures to /var/lib/glusterd/stats at that interval, under
# stock's names and keys: two JSON objects, for the whole time and for the interval. Readers never see a partial file;
# the brick does not follow a symbolic link planted there; when the file cannot be written, the log reports it once.
# Covers: xlators/debug/io-stats/stats-file.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"

volume_new v 1x1
brick=${volume_bricks[v]}
stats=/var/lib/glusterd/stats
file=$stats/glusterfsd_${brick//\//_}.dump
volume_assign v kiln
sed -i '/type debug\/io-stats/a\    option ios-dump-interval 1\n    option ios-dump-format json' "${brick_volfile[$brick]}"
sed -i 's/latency-measurement off/latency-measurement on/' "${brick_volfile[$brick]}"

# FIGURE: prints the figure of the whole time.
figure() {
    python3 - "$file" "$1" <<'EOF'
import json, sys
text = open(sys.argv[1]).read()
whole, end = json.JSONDecoder().raw_decode(text)
inter, last = json.JSONDecoder().raw_decode(text[end:].lstrip())
assert len(whole) > 200 and len(inter) > 200, (len(whole), len(inter))
assert any(k.endswith(".inter.fop.write.per_sec") for k in inter), "rates"
print(next(v for k, v in whole.items() if k.endswith(".aggr." + sys.argv[2])))
EOF
}
counts() { [[ $(figure "$1") == "$2" ]]; }

mkdir -p "$stats"
ln -s "$T/victim" "$stats/.${file##*/}.new"
volume_start v
mount_volume v "$T/mnt" plain
dd if=/dev/zero of="$T/mnt/f" bs=4096 count=10 oflag=direct status=none
t "the brick writes the file" wait_for 60 "the file" test -s "$file"
t "the file counts ten writes of 4 KiB" wait_for 60 "the counts" counts write_4kb 10
t "the file counts ten calls of WRITE" counts fop.write.count 10
t "the file counts the written bytes" counts bytes_written 40960
t "the longest write took some microseconds" awk -v us="$(figure fop.write.latency_max_usec)" 'BEGIN { exit !(us > 1 && us < 1e8) }'
t_not "the brick does not follow a symbolic link" test -e "$T/victim"
# For three seconds: as many files are written.
reads_whole() {
    python3 - "$file" <<'EOF'
import json, sys, time
until = time.monotonic() + 3
while time.monotonic() < until:
    text = open(sys.argv[1]).read()
    _, end = json.JSONDecoder().raw_decode(text)
    json.JSONDecoder().raw_decode(text[end:].lstrip())
EOF
}
t "a reader never sees a partial file" reads_whole

# A file replaces the folder.
mv "$stats" "$stats.away"
echo >"$stats"
log_says() { [[ $(cat "$T"/log/kiln*.log "$T"/log/*.log | sort -u | grep -c 'io-stats-file') == "$1" ]]; }
t "the log names a file that cannot be written" wait_for 60 "the log" log_says 1
rm "$stats"
t "the brick writes the next file" wait_for 60 "the file" test -s "$file"
t "the log has one line about the failure" log_says 1
