# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
dist_man_MANS += doc/kiln.8 doc/kilnd.8 doc/kiln-mount.8
EXTRA_DIST += extras/perf doc/protocol/wire.md doc/protocol/brick.md doc/protocol/client.md \
	doc/protocol/management.md doc/lab-notes.md doc/metrics.md doc/kiln-top.png doc/pool.svg doc/security.md doc/options.md \
	doc/statedump-schema.json
