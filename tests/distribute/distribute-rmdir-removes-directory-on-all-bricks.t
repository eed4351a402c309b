#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two mounts of a 2x2 volume concurrently make, rename and remove the same directories, with directories and files in
# them (a stock mount renames none). Neither mount hangs, and no directory is left on only some of the bricks. Then
# trees are removed while a brick dies. The whole tree disappears, and after the brick is back and healed, the brick
# has no part of the tree either. KILN_STORM_SECONDS and KILN_KILLS make the test longer.
# Covers: xlators/cluster/distribute/rmdir.c, xlators/cluster/distribute/mkdir.c, xlators/cluster/distribute/heal.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

seconds=${KILN_STORM_SECONDS:-4}
kills=${KILN_KILLS:-4}
no_cache=(--attribute-timeout=0 --entry-timeout=0)
volume_split=brick
volume_new v 2x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mkdir "$T/dumps"
mnt=$T/kiln1
mount_kiln v "$T/kiln1" "${no_cache[@]}" --statedump-dir "$T/dumps"
mount_kiln v "$T/kiln2" "${no_cache[@]}"
mount_volume v "$T/stock" plain "${no_cache[@]}"

# ---- side by side ---------------------------------------------------------------------------------

storm() {
    timeout 240 python3 - "$seconds" "$@" <<'EOS'
import errno, os, random, shutil, sys, threading, time
ends, tops, done = time.monotonic() + float(sys.argv[1]), sys.argv[2:4], [0, 0]
stock = {n for n, top in enumerate(tops) if "/stock/" in top} # its rename of a folder can leave half of it
FASTER = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ESTALE, errno.EINVAL,
          None) # rmtree's own, of a name that leads elsewhere by now

def work(n):
    dice, top = random.Random(n + int(time.time())), tops[n]
    while time.monotonic() < ends:
        folder = f"{top}/d{dice.randrange(3)}"
        inner = f"{folder}/e{dice.randrange(3)}"
        other = f"{top}/d{dice.randrange(3)}"
        renames = ((os.rename, folder, other), (os.rename, inner, other), (os.rename, folder, f"{other}/e{dice.randrange(3)}"))
        step = dice.choice((
            (os.mkdir, folder), (os.mkdir, folder), (os.mkdir, inner), (os.rmdir, inner), (os.rmdir, folder), (os.mknod, inner + "f"),
            (shutil.rmtree, folder), (shutil.rmtree, folder), *(renames if n not in stock else ())))
        try:
            step[0](*step[1:])
            done[n] += 1
        except OSError as error:
            if error.errno not in FASTER:
                os.write(2, f"{step[0].__name__}{step[1:]}: {error}\n".encode())
                os._exit(1)

both = [threading.Thread(target=work, args=(n,)) for n in (0, 1)]
for one in both:
    one.start()
for one in both:
    one.join()
print(f"# {done[0]} and {done[1]} steps")
EOS
}

folders_on() {
    (cd "$1/$2" && find . -type d | sort)
}

folders_are_on_all() {
    local brick status=0
    for brick in "${bricks[@]:1}"; do
        diff <(folders_on "${bricks[0]}" "$1") <(folders_on "$brick" "$1") || status=1
    done
    return "$status"
}

# LOOKUPs mend the directories that stock's client has made on only some of the bricks.
looked_at_folders_are_on_all() {
    ls -lR "$T/kiln1/$1" >/dev/null
    folders_are_on_all "$1"
}

wait_for 240 "all children" children_up 4
for mounts in "kiln1 kiln2" "kiln1 stock"; do
    read -r one two <<<"$mounts"
    mkdir "$T/kiln1/$one-$two"
    t "$one and $two create and remove directories concurrently" storm "$T/$one/$one-$two" "$T/$two/$one-$two"
    if [[ $two == stock ]]; then
        t "all bricks have the same directories after lookups" looked_at_folders_are_on_all "$one-$two"
    else
        t "all bricks have the same directories" folders_are_on_all "$one-$two"
    fi
    t "the remaining directories can be removed" rm -r "$T/kiln2/$one-$two"
    t "no brick has the removed directories" bash -c '! ls -d "${@/%//$0}" 2>/dev/null' "$one-$two" "${bricks[@]}"
done

# ---- while a brick dies ---------------------------------------------------------------------------

tree() {
    python3 - "$1" <<'EOS'
import os, sys
for i in range(8):
    for k in range(6):
        folder = f"{sys.argv[1]}/d{i}/e{k}"
        os.makedirs(folder)
        for n in range(k % 3):
            os.close(os.open(f"{folder}/f{n}", os.O_CREAT | os.O_EXCL))
EOS
}

is_on_no_brick() {
    ! ls -d "${bricks[@]/%//$1}" 2>/dev/null
}

shd_start v
for ((n = 0; n < kills; n++)); do
    daemon=${brick_daemon[${bricks[n % 4]}]}
    t "kill $n: a tree is created" tree "$T/kiln1/tree$n"
    rm -rf "$T/kiln1/tree$n" >"$T/log/rm.$n" 2>&1 &
    rm_pid=$!
    sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
    daemon_kill "$daemon"
    status=0
    wait "$rm_pid" || status=$?
    is "$status $(cat "$T/log/rm.$n")" "0 " "kill $n: rm -rf succeeds while brick $((n % 4)) dies"
    t "kill $n: the removed tree is not visible" test ! -e "$T/kiln1/tree$n"
    daemon_start "$daemon"
    wait_for 240 "all children" children_up 4
    t_here "kill $n: no brick has a part of the tree after the heal" wait_for 60 "heal" is_on_no_brick "tree$n"
    t_here "kill $n: no heal is pending" wait_for 60 "heal" nothing_pending "${bricks[@]}"
done
kill -TERM "$shd_pid"
shd_pid=
for mnt in kiln1 kiln2 stock; do
    t_here "$mnt: the volume is unmounted" mount_end "$T/$mnt"
done
volume_stop v
