#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount mounts a volume of one brick, served by kilnd and by stock: the POSIX tour goes through with no caches between, so that
# each call reaches the brick, and the mount is gone without a rest when it is unmounted.

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

for kind in kiln stock; do
    volume_new "v-$kind" 1x1
    volume_assign "v-$kind" "$kind"
    volume_start "v-$kind"
    mount_kiln "v-$kind" "$T/mnt-$kind" --acl --attribute-timeout=0 --entry-timeout=0
    include "$kind: the tour ends well" python3 "$tests_dir/fops/posix_tour.py" "$T/mnt-$kind" --acl
    t_here "$kind: unmounted" mount_end "$T/mnt-$kind"
    volume_stop "v-$kind"
done
