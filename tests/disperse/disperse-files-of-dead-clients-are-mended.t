#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A client of a dispersed volume dies after it has extended files, before it records their sizes; and stock's client punches holes
# across the ends of files, which makes fragments longer than the sizes say. kiln-mount reads the files with their sizes of before, shows
# zeros and no bytes of the dead client when it extends them, and kiln-heal heals them, also with a brick that has missed a change.
# (Stock's daemon fails with EIO on such files for ever.) A program that appends all the time loses two seconds of its lines at most.
# Covers: xlators/cluster/disperse/counters.c, xlators/cluster/disperse/write.c, xlators/cluster/disperse/heal-data.c,
# Covers: xlators/cluster/disperse/heal-block.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

work=$(dirname "$(readlink -f "$0")")/disperse_work.py
volume_split=brick
files=(append behind later longer same untouched)

# Makes files with unaligned sizes, extends them, and dies before their sizes are on the bricks.
extend_and_die() {
    local mnt=$1 i
    mkdir "$T/copies"
    for i in "${files[@]}"; do
        head -c 3000 /dev/urandom >"$T/copies/$i"
        cp "$T/copies/$i" "$mnt/$i"
    done
    mount_end "$mnt"
    if [[ $2 == kiln ]]; then
        mount_kiln "$vol" "$mnt"
    else
        mount_volume "$vol" "$mnt" plain
    fi
    python3 - "$mnt" "${files[@]}" <<'EOS' &
import os, sys, time
fds = [os.open(os.path.join(sys.argv[1], name), os.O_WRONLY | os.O_APPEND | os.O_DIRECT) for name in sys.argv[2:]]
for fd in fds:
    os.write(fd, b"D" * 20000)
open(sys.argv[1] + ".written", "w").close()
time.sleep(1000)
EOS
    wait_for 20 "the writes" test -e "$mnt.written"
    rm "$mnt.written"
    mount_kill "$mnt"
    kill $!
}

# The same change of the volume's file and of its copy. The mount has the size already, as after most programs' fstat(2).
both() {
    local name=$1 at
    shift
    for at in "$T/kiln" "$T/copies"; do
        stat "$at/$name" >/dev/null
        "$@" "$at/$name"
    done
}
put() {
    printf x | dd of="$2" bs=1 seek="$1" conv=notrunc status=none
}
punch() {
    fallocate --punch-hole --offset 2800 --length 7000 "$1"
}
append() {
    printf xxx >>"$1"
}

healer_end() {
    kill -TERM "$shd_pid"
    wait "$shd_pid" 2>/dev/null || true
    shd_pid=
}

same_files() {
    local name
    for name in "${files[@]}"; do
        cmp "$T/kiln/$name" "$T/copies/$name" || return 1
    done
}
lengths_are_right() {
    local name path size
    for name in "${files[@]}"; do
        size=$(stat -c %s "$T/copies/$name")
        for path in "${bricks[@]}"; do
            [[ $(stat -c %s "$path/$name") -eq $(((size + 1023) / 1024 * 512)) ]] || return 1
        done
    done
}

for dead in kiln stock; do
    vol=v$dead
    volume_new "$vol" 1x2+1
    volume_start "$vol"
    read -ra bricks <<<"${volume_bricks[$vol]}"
    mount_kiln "$vol" "$T/dead"
    extend_and_die "$T/dead" "$dead"
    t_not "$dead: the files have been left with long fragments" lengths_are_right
    mount_kiln "$vol" "$T/kiln"
    t "$dead: the files have their bytes and sizes of before" same_files
    both append append
    both behind put 25000
    both later truncate -s 30000
    both longer fallocate -o 24000 -l 3000
    both same put 3070
    t "$dead: extended files show no bytes of the dead client" same_files
    mount_end "$T/kiln"
    kiln_heal_start "$vol"
    t "$dead: kiln-heal heals all files" wait_for 120 "heal" nothing_pending "${bricks[@]}"
    t "$dead: all fragments belong together and have the right lengths" python3 "$work" fragments 1 "${bricks[@]}"
    healer_end

    mount_volume "$vol" "$T/stock" plain
    for name in "${files[@]}"; do
        punch "$T/stock/$name"
        fallocate --punch-hole --keep-size --offset 2800 --length 7000 "$T/copies/$name"
    done
    mount_end "$T/stock"
    mount_kiln "$vol" "$T/kiln"
    t "$dead: files with holes that stock's client has punched across their ends are whole" same_files
    daemon_kill "${brick_daemon[${bricks[1]}]}"
    both untouched put 100
    both same put 9500
    both append append
    mount_end "$T/kiln"
    daemon_start "${brick_daemon[${bricks[1]}]}"
    kiln_heal_start "$vol"
    t "$dead: kiln-heal heals the brick that missed a change of these files" wait_for 120 "heal" nothing_pending "${bricks[@]}"
    healer_end
    t "$dead: all fragments belong together afterwards" python3 "$work" fragments 1 "${bricks[@]}"
    mount_kiln "$vol" "$T/kiln"
    t "$dead: the files are right" same_files
    mount_end "$T/kiln"
    volume_stop "$vol"
    rm -r "$T/copies"
done

# ---- a file that grows all the time ----------------------------------------------------------

volume_start vkiln
mount_kiln vkiln "$T/kiln"
python3 - "$T/kiln/log" "$T/written" <<'EOS' &
import os, sys, time
log, written = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DIRECT), open(sys.argv[2], "w")
for n in range(1, 10000):
    os.write(log, b"line %10d\n" % n)
    print(time.monotonic(), n * 16, file=written, flush=True)
    time.sleep(0.1)
EOS
writer=$!
wait_for 60 "60 lines" eval '[[ $(wc -l <"$T/written") -ge 60 ]]'
kill "$writer"
mount_kill "$T/kiln"
mount_kiln vkiln "$T/kiln"
bytes=$(stat -c %s "$T/kiln/log")
# The bytes that had been written three seconds before the end.
safe=$(awk '{ at[NR] = $1; bytes[NR] = $2 } END { for (i = NR; at[i] > at[NR] - 3; i--); print bytes[i] }' "$T/written")
t "$bytes bytes of a growing file are left after the death of the mount, at least $safe" [ "$bytes" -ge "$safe" -a "$safe" -gt 0 ]
t "... and they are the program's" cmp -n "$bytes" "$T/kiln/log" <(for ((n = 1; n <= 200; n++)); do printf 'line %10d\n' "$n"; done)
