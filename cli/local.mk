# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
sbin_PROGRAMS += kiln
kiln_SOURCES = \
	cli/ask.c \
	cli/bench.c \
	cli/completion.c \
	cli/exchange.c \
	cli/exchange.h \
	cli/explain.c \
	cli/explain.h \
	cli/explain-read.c \
	cli/explain-say.c \
	cli/kiln.c \
	cli/kiln.h \
	cli/mount.c \
	cli/pools.c \
	cli/printable.c \
	cli/printable.h \
	cli/show.c \
	cli/host.c \
	cli/export.c \
	cli/import.c \
	cli/store.c \
	cli/tls.c \
	cli/top.c \
	cli/top.h \
	cli/top-view.c \
	cli/upgrade.c \
	cli/upgrade-mounts.c \
	cli/verbs.c \
	cli/verbs.def \
	cli/volume.c
kiln_LDADD = libglusterfs.a $(JANSSON_LIBS) $(NCURSES_LIBS) $(CRYPTO_LIBS)

# Completions, as the program itself prints them.
bashcompletiondir = $(datadir)/bash-completion/completions
nodist_bashcompletion_DATA = cli/completions/bash/kiln
nodist_zshcompletion_DATA = cli/completions/zsh/_kiln
CLEANFILES += $(nodist_bashcompletion_DATA) $(nodist_zshcompletion_DATA)
cli/completions/bash/kiln cli/completions/zsh/_kiln: kiln$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && ./kiln$(EXEEXT) completion $(notdir $(@D)) > $@.new && mv $@.new $@

check_PROGRAMS += cli/test-exchange cli/test-explain cli/test-printable cli/test-show cli/test-top
cli_test_exchange_SOURCES = cli/test-exchange.c cli/exchange.c
cli_test_exchange_LDADD = $(TEST_LIBS)
cli_test_explain_SOURCES = cli/test-explain.c cli/explain-read.c cli/explain-say.c
cli_test_explain_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
cli_test_printable_SOURCES = cli/test-printable.c cli/printable.c
cli_test_printable_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
cli_test_show_SOURCES = cli/test-show.c cli/show.c
cli_test_show_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
cli_test_top_SOURCES = cli/test-top.c cli/top-view.c
cli_test_top_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
