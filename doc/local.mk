# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
dist_man_MANS += doc/kiln.8 doc/kiln-heal.8 doc/kilnd.8 doc/kiln-mount.8 doc/kiln-state.5 doc/kiln-gfapi.7
# The list of metrics has one source, doc/metrics.md.
man_MANS = doc/kiln-metrics.7
doc/kiln-metrics.7: $(srcdir)/doc/metrics.md $(srcdir)/extras/metrics-page.sh
	$(AM_V_GEN)$(MKDIR_P) doc && $(SHELL) $(srcdir)/extras/metrics-page.sh $(srcdir)/doc/metrics.md >$@.new && mv $@.new $@
CLEANFILES += doc/kiln-metrics.7
EXTRA_DIST += extras/perf doc/protocol/wire.md doc/protocol/brick.md doc/protocol/client.md \
	doc/protocol/management.md doc/protocol/gluster11.md doc/gluster-versions.md doc/lab-notes.md doc/metrics.md extras/metrics-page.sh doc/kiln-top-80.svg doc/kiln-top-200.svg doc/pool.svg doc/security.md doc/options.md \
	doc/statedump-schema.json
