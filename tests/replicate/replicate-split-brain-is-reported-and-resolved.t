#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two replicas were each changed without the other. kiln-mount answers EIO where the right copy is unknown, lists the
# directory, and reports the problem through an xattr with stock's words. The user selects a copy, reads the copy and has the
# file healed from this copy; files without a selection do not change. With a favorite-child policy of the volume the mount
# selects a copy itself, as stock does, and leaves the same counters.
# Covers: xlators/cluster/replicate/split-brain.c, xlators/cluster/replicate/view.c, xlators/cluster/replicate/heal.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

answers() {
    ls "$mnt" >/dev/null 2>&1
}

marks_of() {
    python3 "$(dirname "$0")/replica_work.py" marks "$@"
}

marks_are_settled() {
    ! marks_of "$1" | grep dirty >/dev/null
}

# The kernel first asks for attributes if its cached attributes are older than a second, so the script repeats the call, as a
# user would.
asked() {
    is_said() {
        [[ $(getfattr --absolute-names --only-values -n "$1" "$mnt/$2" | tr -d '\0') == "$3" ]]
    }
    wait_for 240 "$1 of $2" is_said "$@"
}

said() {
    is_taken() {
        setfattr -n "replica.split-brain-$1" -v "$2" "$mnt/$3"
    }
    wait_for 240 "$1 of $3" is_taken "$@"
}

holds() {
    [[ $(cat "$1" 2>/dev/null) == "$2" ]]
}

is_eio() {
    [[ $("$@" 2>&1) == *"Input/output error"* ]]
}

volume_split=brick
volume_new v 1x2
volume_start v
read -ra bricks <<<"${volume_bricks[v]}"
mnt=$T/mnt
mkdir "$T/dumps"
mount_kiln v "$mnt" --entry-timeout=0 --statedump-dir "$T/dumps"
wait_for 240 "both children" children_up 2
for name in data both mode fine left; do
    echo "$name" >"$mnt/$name"
done
mkdir "$mnt/folder"
wait_for 240 "the marks" marks_are_settled "${bricks[0]}"
daemon_kill "$(daemon_of 1)"
wait_for 240 "$mnt to answer" answers
echo first >"$mnt/data"
echo first >"$mnt/left"
echo first >"$mnt/both"
chmod 600 "$mnt/both" "$mnt/mode"
chmod 700 "$mnt/folder"
echo 0 >"$mnt/gfid"
echo 0 >"$mnt/kind"
wait_for 240 "the marks" marks_are_settled "${bricks[0]}"
daemon_kill "$(daemon_of 0)"
daemon_start "$(daemon_of 1)"
wait_for 240 "the other child" children_up 1
wait_for 240 "$mnt to answer" answers
echo "the second" >"$mnt/data"
echo "the second" >"$mnt/left"
echo "the second" >"$mnt/both"
chmod 640 "$mnt/both" "$mnt/mode"
chmod 711 "$mnt/folder"
echo "the other" >"$mnt/gfid"
mkdir "$mnt/kind"
wait_for 240 "the marks" marks_are_settled "${bricks[1]}"
daemon_start "$(daemon_of 0)"
wait_for 240 "both children" children_up 2

# ---- nobody knows
for name in data both mode gfid kind; do
    t "$name: a read fails with EIO" wait_for 240 "EIO" is_eio cat "$mnt/$name"
done
t "a write to a file in data split-brain fails with EIO" is_eio bash -c "echo no >>'$mnt/data'"
for name in data both mode folder; do
    t "$name: stat returns the attributes of one copy" stat "$mnt/$name"
done
t "all files with a gfid are listed with attributes" ls -ld "$mnt/data" "$mnt/both" "$mnt/mode" "$mnt/folder"
t "files in split-brain are opened, FSTAT answers, READ and WRITE fail" python3 - "$mnt" <<'END'
import errno, os, sys

def failed(call, *args):
    try:
        call(*args)
    except OSError as error:
        return error.errno == errno.EIO

for name in "data", "both", "mode":
    for flags in os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND:
        fd = os.open(os.path.join(sys.argv[1], name), flags)
        assert os.fstat(fd).st_size > 0, name
        reads = flags == os.O_RDONLY
        assert failed(os.read, fd, 10) if reads else failed(os.write, fd, b"no"), (name, flags)
        try:
            os.close(fd)
        except OSError:
            assert not reads
    assert failed(os.open, os.path.join(sys.argv[1], name), os.O_WRONLY | os.O_TRUNC), name
END
for name in data both mode; do
    t "$name: chmod fails" is_eio chmod 604 "$mnt/$name"
    t "$name: an xattr is not set" is_eio setfattr -n user.new -v new "$mnt/$name"
    t "$name: an xattr is not read" is_eio getfattr -n user.new "$mnt/$name"
    t "$name: truncate fails" is_eio truncate -s 3 "$mnt/$name"
done
t "names are listed, also those of a directory in split-brain" grep -q gfid <(ls "$mnt" 2>/dev/null)
is "$(cat "$mnt/fine")" fine "a file without split-brain is readable"
choices="Choices:v-client-0,v-client-1"
status=replica.split-brain-status
t_here "the status of a data split-brain is reported" asked $status data "data-split-brain:yes    metadata-split-brain:no    $choices"
t_here "the status of a data and metadata split-brain is reported" asked $status both "data-split-brain:yes    metadata-split-brain:yes    $choices"
t_here "the status of a metadata split-brain is reported" asked $status mode "data-split-brain:no    metadata-split-brain:yes    $choices"
t_here "the status of a directory's split-brain is reported" asked $status folder "data-split-brain:no    metadata-split-brain:yes    $choices"
t_here "the status of a file without split-brain is reported" asked $status fine "The file is not under data or metadata split-brain"
is "$(getfattr --absolute-names --only-values -n glusterfs.pathinfo "$mnt/data" | tr -d '\0' | sed 's/):[^:]*:/):HOST:/g')" \
    "(<REPLICATE:v-replicate-0> <POSIX(${bricks[0]}):HOST:${bricks[0]}/data> <POSIX(${bricks[1]}):HOST:${bricks[1]}/data>)" \
    "both places are told"

# ---- the user knows
t_not "a choice of a replica that does not exist is refused" setfattr -n replica.split-brain-choice -v v-client-2 "$mnt/data"
t_not "a choice for a file without split-brain is refused" setfattr -n replica.split-brain-choice -v v-client-1 "$mnt/fine"
t_here "the second copy is chosen" said choice v-client-1 data
t "reads return the second copy" wait_for 240 "the second" holds "$mnt/data" "the second"
t "writes to the file still fail with EIO" is_eio bash -c "echo no >>'$mnt/data'"
t_here "the first copy is chosen" said choice v-client-0 data
t "reads return the first copy" wait_for 240 "the first" holds "$mnt/data" first
t_here "the choice is withdrawn" said choice none data
t "reads fail with EIO again" wait_for 240 "EIO" is_eio cat "$mnt/data"
marks_of "${bricks[@]}" | grep -v ' data' >"$T/before"
t_here "the file is healed from the second copy" said heal-finalize v-client-1 data
is "$(cat "${bricks[0]}/data")" "the second" "the first brick has the contents of the second"
t "the healed file is readable" wait_for 240 "the healed contents" holds "$mnt/data" "the second"
is "$(marks_of "${bricks[@]}" | grep ': data')" "" "no mark of the healed file is left"
t "the marks of all other files are unchanged" diff "$T/before" <(marks_of "${bricks[@]}" | grep -v ' data')
t_here "a file is healed from the first copy, with its attributes" said heal-finalize v-client-0 both
is "$(cat "${bricks[1]}/both") $(stat -c %a "${bricks[1]}/both")" "first 600" "the second brick has the contents and attributes of the first"
t_here "a directory is healed from the second copy" said heal-finalize v-client-1 folder
is "$(stat -c %a "${bricks[0]}/folder")" 711 "the first brick has the directory's attributes of the second"
t_here "the volume is unmounted" mount_end "$mnt"

# ---- attributes that the kernel asks for each time
mount_kiln v "$mnt" --attribute-timeout=0 --statedump-dir "$T/dumps"
wait_for 240 "both children" children_up 2
t "GETATTR answers for a file in metadata split-brain" bash -c "exec 3<'$mnt/mode' && stat '$mnt/mode' && stat /dev/fd/3 -L"
t "a file in split-brain can be removed" bash -c "cp /dev/null '$mnt/asked' && rm -i '$mnt/asked' <<<yes && ! [[ -e '$mnt/asked' ]]"
t_here "the mount is unmounted after GETATTR and removal" mount_end "$mnt"

# ---- the volume knows
mount_kiln v "$mnt" --attribute-timeout=0 --entry-timeout=0 --xlator-option "*replicate*.favorite-child-policy=size" \
    --statedump-dir "$T/dumps"
wait_for 240 "both children" children_up 2
is "$(cat "$mnt/left")" "the second" "the policy selects the larger copy for reads"
is "$(marks_of "${bricks[@]}" | grep ': left about')" "brick 1: left about 0 2 0 0" "the smaller copy is accused by a pending mark"
is "$(cat "$mnt/gfid")" "the other" "of two files with one name the policy selects the larger"
is "$(getfattr --absolute-names -e hex -n trusted.gfid "${bricks[0]}/gfid" | tail -n +2)" \
    "$(getfattr --absolute-names -e hex -n trusted.gfid "${bricks[1]}/gfid" | tail -n +2)" "on both"
t "the policy does not apply to a file and a directory with one name" is_eio cat "$mnt/kind"
t "the policy does not apply to copies of the same size" is_eio cat "$mnt/mode"
t_here "the mount with a policy is unmounted" mount_end "$mnt"
