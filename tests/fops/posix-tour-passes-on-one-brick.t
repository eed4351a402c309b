#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# One brick on a tmpfs is mounted by the stock client without performance layers and kernel cache, so each call of the
# POSIX tour reaches the brick.
# Covers: xlators/storage/posix, xlators/protocol/server

. "$(dirname "$0")/../lib/kiln.sh"

volume_new v 1x1
volume_start v
mount_volume v "$T/mnt" plain --acl --attribute-timeout=0 --entry-timeout=0
options=(--acl --no-zero-range --groups-are-kept)
include "the tour ends well" python3 "$tests_dir/fops/posix_tour.py" "$T/mnt" "${options[@]}"
