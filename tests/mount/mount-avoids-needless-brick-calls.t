#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount sends no calls with known answers to bricks (client 3.22): no request for a directory's attributes after each
# change by this mount, no FSYNC after writes that were synchronous, no lock before UNLINK on bricks that do not need it, one
# lock for several names, and no OPENDIR on replicas that do not list the directory. The script counts the calls. A second
# mount sees the same files, and the first mount sees the changes of the second when --attribute-timeout has passed.
# Covers: xlators/cluster/replicate/hold.c, xlators/cluster/distribute/names.c, xlators/mount/fuse/attr.c

. "$(dirname "$0")/../lib/kiln.sh"
. "$(dirname "$0")/../lib/measure.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

files=40
volume_new v 2x2
volume_start v
kiln=$T/kiln
stock=$T/stock
mount_kiln v "$kiln"
mount_volume v "$stock" plain --attribute-timeout=0 --entry-timeout=0
mkdir "$kiln/d"
seed_work_build

count_begin() {
    calls_take "${mount_pid[$kiln]}" "$T/before"
}

# Sets calls[FOP]: how many since then.
count_end() {
    local fop n
    calls_take "${mount_pid[$kiln]}" "$T/after"
    calls=([opendir]=0 [fsyncdir]=0 [stat]=0 [fsync]=0 [inodelk]=0 [writev]=0 [entrylk]=0 [lookup]=0)
    while read -r fop n; do
        calls[$fop]=$n
    done <"$T/after"
    while read -r fop n; do
        calls[$fop]=$((${calls[$fop]} - n))
    done <"$T/before"
}
declare -A calls

work() {
    "$seed_work" create "$1" "$files" && "$seed_work" write "$1" "$files"
}

count_begin
t "files are created, written and removed" work "$kiln/d"
count_end
is "${calls[writev]}" $((2 * files)) "each file is written on both replicas"
t "the mount sends no STAT of the directory for each file (${calls[stat]} STATs)" test "${calls[stat]}" -lt $((2 * files))
is "${calls[fsync]}" 0 "data that was written synchronously is not synced again"
is "${calls[inodelk]}" "$([[ $BRICKD == kiln ]] && echo 0 || echo $((4 * files)))" "no lock is taken before UNLINK, except on stock bricks"

# Names share a lock only if they follow each other within milliseconds, so a busy machine may need another try.
names_share() {
    count_begin
    work "$kiln/d" >"$T/log/work.out" && count_end
    [[ ${calls[entrylk]} -lt $((8 * files)) ]]
}
t_here "several names share a lock" wait_for 240 "names to share a lock" names_share
diag "${calls[entrylk]} ENTRYLKs and unlocks for $files files"

# The first name of a new folder shares the lock of all names instead of taking a separate lock: 8 calls less for each folder.
fill_folders() {
    python3 - "$1" <<'EOS'
import os, sys, time
for i in range(10):
    time.sleep(0.05)
    os.mkdir(f"{sys.argv[1]}/new{i}")
    for k in range(8):
        os.close(os.open(f"{sys.argv[1]}/new{i}/{k}", os.O_CREAT | os.O_EXCL))
EOS
}
new_folders_share() {
    rm -rf "$kiln"/d/new*
    count_begin
    fill_folders "$kiln/d" && sleep 0.2 && count_end
    diag "${calls[entrylk]} ENTRYLKs and unlocks for 10 new folders of 8 files"
    [[ ${calls[entrylk]} -le 240 ]]
}
make_folders() {
    mkdir "$kiln"/d/made{1..10}
}
count_begin
t "ten directories are created" make_folders
count_end
t "new directories are not looked up before they have their layouts (${calls[lookup]} LOOKUPs)" test "${calls[lookup]}" -lt 40
count_begin
t "the ten directories are listed" ls "$kiln"/d/made{1..10}
count_end
is "${calls[opendir]}" 20 "each directory is opened on one replica of both sets"
# The attributes of a folder's LOOKUP are valid as long as the kernel may cache them. The kernel asks again after each listing.
lists_quietly() {
    sleep 1.1
    count_begin
    python3 - "$kiln"/d/made{1..10} <<'EOS' && count_end
import os, sys
for folder in sys.argv[1:]:
    fd = os.open(folder, os.O_RDONLY)
    os.listdir(fd)
    os.fstat(fd)
EOS
    diag "${calls[stat]} STATs for listing 10 directories"
    [[ ${calls[stat]} -lt 5 ]]
}
t_here "a directory needs no STAT after it was listed" wait_for 60 "folders to be listed" lists_quietly
count_begin
t "a directory is synced" python3 -c 'import os, sys; os.fsync(os.open(sys.argv[1], os.O_RDONLY))' "$kiln/d"
count_end
is "${calls[fsyncdir]}" 4 "FSYNCDIR reaches all bricks"

# Without sharing, the mount looks each name up twice and locks each name: 80 LOOKUPs, 200 ENTRYLKs and unlocks.
rmdirs_share() {
    count_begin
    rmdir "$kiln"/d/made* && count_end
    diag "${calls[lookup]} LOOKUPs, ${calls[entrylk]} ENTRYLKs and unlocks for 10 removed directories"
    [[ ${calls[lookup]} -lt 80 && ${calls[entrylk]} -lt 170 ]] || { make_folders && return 1; }
}
t_here "removed directories share a lock and are looked up once" wait_for 240 "folders to share locks" rmdirs_share

t_here "the first names of a new directory share a lock" wait_for 240 "new folders to share locks" new_folders_share
rm -rf "$kiln"/d/new*
label_errno() {
    python3 -c 'import os, sys
try:
    os.getxattr(sys.argv[1], "security.selinux")
except OSError as e:
    print(e.errno)' "$1"
}
is "$(label_errno "$kiln/d")" 95 "EOPNOTSUPP for a security label keeps ls -l from asking for each file's label"
is "$(stat -c %o "$kiln/d")" "$(stat -c %o "$stock/d")" "the preferred I/O size equals that of a stock mount"

# Distribute locks both names of each, too: 8 calls.
rename_all() {
    python3 - "$1" "$files" <<'EOS'
import os, sys
folder, count = sys.argv[1:]
for i in range(int(count)):
    os.close(os.open(f"{folder}/old", os.O_CREAT | os.O_EXCL))
    os.rename(f"{folder}/old", f"{folder}/new")
os.unlink(f"{folder}/new")
EOS
}
renames_share() {
    count_begin
    rename_all "$kiln/d" && count_end
    [[ ${calls[entrylk]} -lt $((12 * files)) ]]
}
t_here "renames within a directory share a lock" wait_for 240 "renames to share a lock" renames_share
diag "${calls[entrylk]} ENTRYLKs and unlocks for $files created and renamed files"

# Both mounts make, remove and rename names in one folder at once, in part the same names.
storm() {
    python3 - "$1" "$2" <<'EOS'
import os, sys
folder, mine = sys.argv[1:]
def quiet(f, *args):
    try:
        f(*args)
        return 1
    except (FileNotFoundError, FileExistsError):
        return 0
done = 0
for i in range(150):
    own = f"{folder}/{mine}{i}"
    os.close(os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    done += quiet(lambda: os.close(os.open(f"{folder}/both{i % 7}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)))
    done += quiet(os.unlink, f"{folder}/both{(i + 3) % 7}")
    if i % 5 == 0:
        os.rename(own, own + "m")
        os.mkdir(own + "d")
        os.rmdir(own + "d")
    elif i % 2:
        os.unlink(own)
print(done)
EOS
}

both_storm() {
    local pid status=0
    storm "$stock/d" s >"$T/log/storm.stock" 2>&1 &
    pid=$!
    storm "$kiln/d" k >"$T/log/storm.kiln" 2>&1 || status=1
    wait "$pid" || status=1
    return "$status"
}

names() {
    (cd "$1" && find d | sort)
}

same_names() {
    is "$(names "$kiln")" "$(names "$stock")" "both mounts see the same names"
    is "$(names "${bricks[0]}") $(names "${bricks[2]}")" "$(names "${bricks[1]}") $(names "${bricks[3]}")" "replicas have the same names"
}
mapfile -t bricks < <(tr ' ' '\n' <<<"${volume_bricks[v]}")
t "both mounts change names in one directory concurrently" both_storm
same_names

# Both mounts make, fill, empty and remove three folders at once: each mount finds the folders that the other mount has made in
# place of known folders.
folder_storm() {
    python3 - "$1" <<'EOS'
import errno, os, sys
expected = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ESTALE)
def quiet(f, *args):
    try:
        f(*args)
    except OSError as e:
        if e.errno not in expected:
            raise
for i in range(60):
    name = f"{sys.argv[1]}/folder{i % 3}"
    quiet(os.mkdir, name)
    quiet(lambda: os.close(os.open(f"{name}/file", os.O_CREAT | os.O_WRONLY)))
    if i % 2:
        quiet(os.rmdir, name)
    quiet(os.unlink, f"{name}/file")
    quiet(os.rmdir, name)
EOS
}
both_storm_folders() {
    local pid status=0
    folder_storm "$stock/d" >"$T/log/folders.stock" 2>&1 &
    pid=$!
    folder_storm "$kiln/d" >"$T/log/folders.kiln" 2>&1 || status=1
    wait "$pid" || true # what a stock client runs into here is its own
    return "$status"
}
t "both mounts create and remove the same directories concurrently" both_storm_folders
same_names
rm -r "$kiln/d"
t_not "the directory is removed with all of its contents" test -e "$stock/d"
mkdir "$kiln/d"

# A file that was also written without O_SYNC.
sync_both() {
    python3 - "$1" <<'EOS'
import os, sys
plain = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
synced = os.open(sys.argv[1], os.O_WRONLY | os.O_SYNC)
os.pwrite(plain, b"a", 0)
os.fsync(synced)
os.pwrite(synced, b"b", 1)
EOS
}
count_begin
sync_both "$kiln/d/both"
count_end
t "FSYNC is sent when unsynced data is left" test "${calls[fsync]}" -ge 2
t "FSYNC is not sent again for the synchronous write" test "${calls[fsync]}" -lt 4

# Bricks may execute the writes of an append in another order, so data from before, and data that is not appended in
# succession, is synced.
pieces() {
    python3 - "$kiln/d/pieces" "$@" <<'EOS'
import os, sys
path, count, *offsets = sys.argv[1:]
for i in range(int(count)):
    fd = os.open(path + str(i), os.O_WRONLY | os.O_CREAT)
    for offset in offsets:
        os.pwrite(fd, b"p" * 10000, int(offset))
    os.close(fd)
EOS
}
marks_are_gone() {
    local brick
    for brick in "${bricks[@]}"; do
        ! getfattr -n trusted.afr.dirty -e hex "$brick"/d/pieces* 2>/dev/null | grep -q 0x00000001 || return 1
    done
}
syncs_of() {
    count_begin
    pieces "$@"
    wait_for 240 "the marks to go" marks_are_gone
    count_end
}
syncs_of "$files" 0 10000 20000 30000
is "${calls[fsync]}" 0 "no FSYNC is sent after sequential writes"
syncs_of 1 5000
t "an overwritten range is synced" test "${calls[fsync]}" -ge 2
syncs_of 1 50000 45000
t "a range that was written twice is synced" test "${calls[fsync]}" -ge 2
syncs_of 1 100000
t "a write beyond the end of the file is synced" test "${calls[fsync]}" -ge 2

# A folder's times and link count after each change equal the bricks'.
looks() {
    stat -c '%x %y %z %h %a' "$1"
}

same_looks() {
    [[ $(looks "$kiln/$1") == "$(looks "$stock/$1")" ]] || { looks "$kiln/$1"; looks "$stock/$1"; return 1; }
}

changes=("touch a" "mkdir e" "touch e/f" "ln a b" "ln -s a c" "mv a g" "mv g e/g" "mknod p p" "rm b" "rm e/f" "rm e/g" "rmdir e" "mkdir e" "mv e h"
    "chmod 750 ." "touch -d 2001-01-01 ." "touch again" "setfattr -n user.x -v 1 .")
looks "$kiln/d" >/dev/null
good=yes
for change in "${changes[@]}"; do
    sleep 0.02
    (cd "$kiln/d" && $change) && same_looks d || { good="after $change"; break; }
done
is "$good" yes "the directory has the same attributes as on the stock mount after ${#changes[@]} changes"
t "the root has the same attributes as on the stock mount" same_looks .

# What others do.
looks "$kiln/d" >/dev/null
touch "$stock/d/others"
t "another client's change of times is seen after the timeout" wait_for 60 "the folder's times" same_looks d
looks "$kiln/d" >/dev/null
chmod 705 "$stock/d"
t "another client's change of the mode is seen after the timeout" wait_for 60 "the folder's mode" same_looks d
touch "$stock/d/others2" "$kiln/d/mine"
t "concurrent changes by both clients are seen after the timeout" wait_for 60 "the folder's times" same_looks d
mkdir "$kiln/d/gone"
looks "$kiln/d/gone" >/dev/null
rmdir "$stock/d/gone"
not_there() {
    [[ ! -e $kiln/d/gone ]]
}
t "a directory that another client has removed disappears" wait_for 60 "the folder to be gone" not_there

# Without.
mount_end "$kiln"
mount_kiln v "$kiln" --xlator-option='*.folder-attributes=off' --xlator-option='*.skip-synced-fsync=off' \
    --xlator-option='*.unlink-takes-migrate-lock=on' --xlator-option='*.share-entry-lock=off'
count_begin
t "files are created, written and removed with all savings off" work "$kiln/d"
count_end
t "STATs of the directory are sent with all savings off (${calls[stat]} STATs)" test "${calls[stat]}" -ge $((2 * files))
is "${calls[fsync]}" $((2 * files)) "with all savings off each FSYNC goes to the bricks"
is "${calls[inodelk]}" $((4 * files)) "with all savings off a lock is taken before each UNLINK"
is "${calls[entrylk]}" $((8 * files)) "with all savings off each created and removed name is locked and unlocked on both replicas"
count_begin
rename_all "$kiln/d"
count_end
t "with all savings off both names of each rename are locked" test "${calls[entrylk]}" -ge $((20 * files))
