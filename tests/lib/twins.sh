# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# twins: two volumes of one glusterd that differ only in the daemons of their bricks: stock glusterfsd serves twin-a, the daemon
# under test serves twin-b. The gluster CLI has to show both volumes in the same shape. With BRICKD=stock both daemons are stock,
# so a difference then is a defect of the test.
#
#   twins_start LAYOUT       glusterd, both volumes, all bricks online
#   twins_mount [ARG...]     their mounts, $T/mnt-a and $T/mnt-b, connected to all bricks; ARG for glusterfs(8)
#   twins_run CMD...         CMD for each volume, with VOL, MNT and BRICK (the path of brick 0, without the number) replaced in
#                            each word; succeeds when both commands succeed
#   t_twins DESC ARG...      gluster volume ARG..., VOL replaced: the same exit status, and the output has the same shape
#                            (tests/lib/cli_shape.py). TWINS_SHAPE=ARG...: arguments of cli_shape.py

declare -A twin_mnt=([twin-a]=$T/mnt-a [twin-b]=$T/mnt-b)
TWINS_SHAPE=

twins_start() {
    system_cover
    glusterd_start
    twin_layout=$1
    twin_make twin-a "$1"
    [[ $BRICKD == stock ]] || use_kiln on
    twin_make twin-b "$1"
    if [[ $BRICKD == kiln ]]; then
        is "$(glusterd_brick_kinds)" "kilnd stock" "one volume's bricks are stock, the other's kilnd"
    fi
}

twin_make() {
    gl_create "$1" "$2" >/dev/null
    gl volume start "$1" >/dev/null
    wait_for 120 "the bricks of $1 to be online" bricks_all_online "$1" "$(volume_brick_count "$2")"
}

bricks_all_online() {
    [[ $(bricks_online "$1") == "$2" ]]
}

glusterd_brick_kinds() {
    local pid
    for pid in $(glusterd_brick_pids); do
        case $(readlink "/proc/$pid/exe") in
        */kilnd) echo kilnd ;;
        *) echo stock ;;
        esac
    done | sort -u | xargs
}

twins_mount() {
    local vol
    for vol in twin-a twin-b; do
        gl_mount "$vol" "${twin_mnt[$vol]}" "$@"
        wait_for 120 "the mount of $vol to reach all bricks" gl_mount_reaches "${twin_mnt[$vol]}" "$vol" "$twin_layout"
    done
}

twin_words() {
    local vol=$1 word
    shift
    words=()
    for word in "$@"; do
        word=${word//VOL/$vol}
        word=${word//MNT/${twin_mnt[$vol]}}
        words+=("${word//BRICK/$T/bricks/$vol}")
    done
}

twins_run() {
    local vol
    local -a words
    for vol in twin-a twin-b; do
        twin_words "$vol" "$@"
        "${words[@]}" || return
    done
}

twin_shape() {
    local vol=$1 out status=0
    local -a words
    shift
    twin_words "$vol" "$@"
    out=$(gl volume "${words[@]}" 2>&1) || status=$?
    echo "exit status $status"
    # shellcheck disable=SC2086
    python3 "$kiln_lib/cli_shape.py" $TWINS_SHAPE <<<"$out"
}

twins_differ_not() {
    twin_shape twin-a "$@" >"$T/shape-a"
    twin_shape twin-b "$@" >"$T/shape-b"
    diff -u --label stock --label "$BRICKD" "$T/shape-a" "$T/shape-b"
}

t_twins() {
    local desc=$1
    shift
    t "$desc: exit status and output match stock" twins_differ_not "$@"
}
