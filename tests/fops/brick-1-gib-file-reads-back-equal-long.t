#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# A stock client writes a file of 1 GiB into a replicated volume. Another mount reads the same contents, and both
# bricks hold the same file.
# Covers: xlators/storage/posix/data/write.c, xlators/storage/posix/data/read.c, rpc/transport

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 1x2
volume_start v
mount_volume v "$T/m1"
mount_volume v "$T/m2"

# Bytes that are not periodic, made fast: AES in counter mode over zeros.
make_data() {
    openssl enc -aes-128-ctr -K 00112233445566778899aabbccddeeff -iv 00000000000000000000000000000000 \
        </dev/zero 2>/dev/null | head -c 1073741824
}
want=$(make_data | sha256sum) || true
write_it() {
    { make_data || true; } | dd of="$T/m1/big" bs=1M iflag=fullblock conv=fsync status=none
}
t "a client writes 1 GiB and calls fsync" write_it
is "$(stat -c %s "$T/m2/big")" 1073741824 "the other mount shows the size of the file"
is "$(sha256sum <"$T/m2/big")" "$want" "the other mount reads the written bytes"
for brick in ${volume_bricks[v]}; do
    is "$(sha256sum <"$brick/big")" "$want" "$(basename "$brick") has the written bytes"
done
t "the client removes the file" rm "$T/m1/big"
