# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# place: file systems for bricks, in memory except those of place_disk.
#
#   place_tmpfs DIR [SIZE]     a ramdisk
#   place_xfs   DIR [SIZE]     an XFS in a file on a ramdisk, for operations that a tmpfs lacks (zeroing a
#                              range, for example)
#   place_zram  DIR DEVICE     an XFS on a zram device that has its size already
#   place_disk  DIR xfs|ext4 [SIZE]     this file system in a file in /var/tmp, so that fsync(2) reaches the machine's disk

place_tmpfs() {
    mkdir -p "$1"
    mount -t tmpfs -o "size=${2:-4g},mode=755,nr_inodes=0" kiln-brick "$1"
}

place_xfs() {
    local dir=$1 size=${2:-2g} image
    image=$dir.xfs
    mkdir -p "$dir"
    truncate -s "$size" "$image"
    mkfs.xfs -q -f -i size=512 "$image"
    mount -o loop,noatime "$image" "$dir"
}

place_zram() {
    mkdir -p "$1"
    mkfs.xfs -q -f -i size=512 "$2"
    mount -o noatime "$2" "$1"
}

# The file has no name: it goes with the loop device.
place_disk() {
    local dir=$1 kind=$2 image device
    local -a options=(-q -F)
    [[ $kind == ext4 ]] || options=(-q -f -i size=512)
    mkdir -p "$dir"
    image=$(mktemp /var/tmp/kiln-disk.XXXXXX)
    truncate -s "${3:-4g}" "$image"
    "mkfs.$kind" "${options[@]}" "$image"
    device=$(losetup --find --show --direct-io=on "$image")
    rm "$image"
    mount -o noatime "$device" "$dir"
    losetup --detach "$device" # goes when the file system is unmounted
}
