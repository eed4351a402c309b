# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
EXTRA_DIST += COPYING COPYING-GPLV2 COPYING-LGPLV3 COPYING-GPLV3 debian/control .ci/run \
	extras/build.sh extras/client-state.sh extras/install-deps.sh extras/pools-table.sh extras/quickstart.sh extras/volfile.sh \
	tests/run.sh tests/lib tests/wire tests/fops tests/locks tests/mux tests/faults tests/bench
