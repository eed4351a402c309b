#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One brick on a tmpfs, mounted with no performance layer and no kernel cache between: each call reaches the brick.

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 1x1
volume_start v
mount_volume v "$T/mnt" plain --acl --attribute-timeout=0 --entry-timeout=0
options=(--acl --no-zero-range --groups-are-kept)
include "the tour ends well" python3 "$tests_dir/fops/posix_tour.py" "$T/mnt" "${options[@]}"
