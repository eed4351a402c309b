# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# subjects: the clients that a benchmark compares on one volume. Sourced after kiln.sh.
#
#   stock      the stock client
#   kiln       kiln-mount in a process of its own
#   inside     Kiln's client in kilnd's own process
#   through    fuse-through.c, a bare pass-through to a folder of the bricks' file system: no volume, only the costs of FUSE
#
#   subjects_choose BRICK      fills the array $subjects where it is empty and sets up bricks of the kind BRICK (kiln, stock);
#                              fails when inside is asked of stock bricks
#   subjects_build             builds the pass-through
#   subjects_place MEDIUM SIZE     $T/ram on MEDIUM: tmpfs, or xfs or ext4 on the machine's disk
#   subject_mount SUBJECT VOL  mounts at $T/m/SUBJECT and sets pid: the process that serves the mount
#   subject_end SUBJECT        unmounts
#   subject_bricks SUBJECT     prints the processes whose CPU time counts as the bricks', with commas: none for the pass-through,
#                              and none beside pid for mounts inside the daemon

subjects_choose() {
    if [[ ${#subjects[@]} -eq 0 ]]; then
        subjects=(stock kiln inside through)
        [[ $1 == kiln ]] || subjects=(stock kiln through)
    fi
    [[ $1 == kiln || " ${subjects[*]} " != *" inside "* ]] || return 1
    BRICKD=$1
    if [[ $1 == kiln ]]; then
        volume_daemon=kilnd
        kilnd_options=(--management-socket="$T/kilnd.socket" --inside-mounts)
    fi
}

subjects_build() {
    through=$T/fuse-through
    # shellcheck disable=SC2046
    gcc -std=gnu17 -O2 -D_GNU_SOURCE -Wall -Wextra -Werror $(pkg-config --cflags fuse3) -o "$through" \
        "$tests_dir/bench/fuse-through.c" $(pkg-config --libs fuse3)
}

subjects_place() {
    case $1 in
    tmpfs) place_tmpfs "$T/ram" "$2" ;;
    xfs | ext4) place_disk "$T/ram" "$1" "$2" ;;
    *) return 1 ;;
    esac
}

through_is_mounted() {
    [[ $(findmnt -n -o SOURCE --mountpoint "$T/m/through") == fuse-through ]]
}

subject_mount() {
    local mnt=$T/m/$1
    mkdir -p "$mnt"
    case $1 in
    stock) mount_volume "$2" "$mnt"; pid=${mount_pid[$mnt]} ;;
    kiln)
        volume_client_volfile "$2" default >"$T/$2.kiln.vol"
        "$KILN_MOUNT" -N -f "$T/$2.kiln.vol" -l "$T/log/kiln-mount-kiln.log" "$mnt" >>"$T/log/kiln-mount.out" 2>&1 &
        pid=$!
        mount_pid[$mnt]=$pid mount_is_kiln[$mnt]=yes
        wait_for 240 "$mnt to be mounted" mount_is_listed_or_ended "$mnt" "$pid"
        ;;
    inside)
        volume_client_volfile "$2" default >"$T/$2.inside.vol"
        "$KILN_MOUNT" --inside="$T/kilnd.socket" -f "$T/$2.inside.vol" "$mnt"
        pid=${daemon_pid[kilnd]}
        ;;
    through)
        mkdir -p "$T/ram/through"
        "$through" "$T/ram/through" "$mnt" >>"$T/log/through.out" 2>&1 &
        pid=$!
        wait_for 60 "$mnt to be mounted" through_is_mounted
        ;;
    esac
}

subject_end() {
    local mnt=$T/m/$1
    case $1 in
    inside) umount "$mnt" ;;
    through)
        umount "$mnt"
        wait "$pid" || true
        ;;
    *) mount_end "$mnt" ;;
    esac
}

subject_bricks() {
    [[ $1 == through || $1 == inside ]] || (IFS=,; echo "${daemon_pid[*]}")
}
