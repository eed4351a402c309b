#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The usage of a namespace equals the figure of du after a hundred storms of all operations, every second with a kill: see
# simple-quota-usage-equals-du.t.
# Covers: xlators/features/simple-quota

KILN_QUOTA_ROUNDS=${KILN_QUOTA_ROUNDS:-100} exec "$(dirname "$0")/simple-quota-usage-equals-du.t"
