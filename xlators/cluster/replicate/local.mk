# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/cluster/children.h \
	xlators/cluster/crawl-looks.c \
	xlators/cluster/crawl-looks.h \
	xlators/cluster/dead-changes.c \
	xlators/cluster/dead-changes.h \
	xlators/cluster/errand.c \
	xlators/cluster/errand.h \
	xlators/cluster/fan.c \
	xlators/cluster/folder-place.c \
	xlators/cluster/folder-place.h \
	xlators/cluster/fan.h \
	xlators/cluster/lock-calls.c \
	xlators/cluster/lock-calls.h \
	xlators/cluster/heal-throttle.c \
	xlators/cluster/heal-throttle.h \
	xlators/cluster/name-sets.c \
	xlators/cluster/name-sets.h \
	xlators/cluster/old-clients.c \
	xlators/cluster/old-clients.h \
	xlators/cluster/replicate/all.c \
	xlators/cluster/replicate/changelog.c \
	xlators/cluster/replicate/changelog.h \
	xlators/cluster/replicate/copies.c \
	xlators/cluster/replicate/crawl.c \
	xlators/cluster/replicate/crawl.h \
	xlators/cluster/replicate/crawl-internal.h \
	xlators/cluster/replicate/crawl-new-bricks.c \
	xlators/cluster/replicate/crawl-questions.c \
	xlators/cluster/replicate/data.c \
	xlators/cluster/replicate/dead-folders.c \
	xlators/cluster/replicate/entry.c \
	xlators/cluster/replicate/fan.c \
	xlators/cluster/replicate/heal-data.c \
	xlators/cluster/replicate/heal-entry.c \
	xlators/cluster/replicate/heal-metadata.c \
	xlators/cluster/replicate/heal-name.c \
	xlators/cluster/replicate/heal-park.c \
	xlators/cluster/replicate/heal.c \
	xlators/cluster/replicate/heal.h \
	xlators/cluster/replicate/hold.c \
	xlators/cluster/replicate/locks.c \
	xlators/cluster/replicate/lookup.c \
	xlators/cluster/replicate/metadata.c \
	xlators/cluster/replicate/new-files.c \
	xlators/cluster/replicate/open-files.c \
	xlators/cluster/replicate/read.c \
	xlators/cluster/replicate/replicate-internal.h \
	xlators/cluster/replicate/replicate.c \
	xlators/cluster/replicate/split-brain.c \
	xlators/cluster/replicate/transaction.c \
	xlators/cluster/replicate/view.c

check_PROGRAMS += xlators/cluster/replicate/test-changelog
xlators_cluster_replicate_test_changelog_SOURCES = xlators/cluster/replicate/test-changelog.c
xlators_cluster_replicate_test_changelog_LDADD = $(TEST_LIBS)

# Bricks in memory for unit tests of layers that fan out, and a virtual clock (test-children.h).
TEST_CHILDREN = xlators/cluster/test-children.c xlators/cluster/test-children-index.c \
	xlators/cluster/test-children-locks.c xlators/cluster/test-children-serve.c xlators/cluster/test-children-store.c \
	xlators/cluster/test-children.h xlators/cluster/test-children-internal.h
WRAP_FOR_CHILDREN = $(AM_LDFLAGS) -Wl,--wrap=worker_post,--wrap=worker_post_any,--wrap=timer_start,--wrap=timer_stop,--wrap=clock_mono_ns

TEST_LIES = xlators/cluster/test-lies.c xlators/cluster/test-lies.h
# The same with allocations that fail on command (scene_starve).
TEST_STARVING = $(TEST_CHILDREN) xlators/cluster/test-starving.c
WRAP_FOR_STARVING = $(WRAP_FOR_CHILDREN) -Wl,--wrap=arena_alloc,--wrap=arena_zalloc,--wrap=arena_dup,--wrap=arena_printf,--wrap=coroutine_new,--wrap=malloc,--wrap=calloc,--wrap=reallocarray
# ... and realloc().
TEST_STARVING_REALLOC = $(TEST_STARVING) xlators/cluster/test-starving-realloc.c
WRAP_FOR_STARVING_REALLOC = $(WRAP_FOR_STARVING) -Wl,--wrap=realloc

TEST_REPLICA_CHANGES = xlators/cluster/replicate/test-replica-changes.c xlators/cluster/replicate/test-replica-changes.h \
	xlators/cluster/replicate/test-replicas.h

check_PROGRAMS += xlators/cluster/replicate/test-replicate-direction
xlators_cluster_replicate_test_replicate_direction_SOURCES = xlators/cluster/replicate/test-replicate-direction.c \
	xlators/cluster/replicate/test-replicas.h $(TEST_CHILDREN)
xlators_cluster_replicate_test_replicate_direction_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_replicate_test_replicate_direction_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-faults
xlators_cluster_replicate_test_replicate_faults_SOURCES = xlators/cluster/replicate/test-replicate-faults.c $(TEST_REPLICA_CHANGES) $(TEST_CHILDREN)
xlators_cluster_replicate_test_replicate_faults_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_replicate_test_replicate_faults_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-reads
xlators_cluster_replicate_test_replicate_reads_SOURCES = xlators/cluster/replicate/test-replicate-reads.c \
	xlators/cluster/replicate/test-replicas.h $(TEST_CHILDREN)
xlators_cluster_replicate_test_replicate_reads_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_replicate_test_replicate_reads_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-memory
xlators_cluster_replicate_test_replicate_memory_SOURCES = xlators/cluster/replicate/test-replicate-memory.c \
	$(TEST_REPLICA_CHANGES) $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_memory_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_replicate_test_replicate_memory_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-split
xlators_cluster_replicate_test_replicate_split_SOURCES = xlators/cluster/replicate/test-replicate-split.c \
	xlators/cluster/replicate/test-replicas.h $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_split_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_replicate_test_replicate_split_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-all
xlators_cluster_replicate_test_replicate_all_SOURCES = xlators/cluster/replicate/test-replicate-all.c \
	xlators/cluster/replicate/test-replicas.h $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_all_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_replicate_test_replicate_all_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-crawl
xlators_cluster_replicate_test_replicate_crawl_SOURCES = xlators/cluster/replicate/test-replicate-crawl.c \
	$(TEST_REPLICA_CHANGES) $(TEST_STARVING_REALLOC)
xlators_cluster_replicate_test_replicate_crawl_LDFLAGS = $(WRAP_FOR_STARVING_REALLOC) -Wl,--wrap=sem_wait
xlators_cluster_replicate_test_replicate_crawl_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-new-bricks
xlators_cluster_replicate_test_replicate_new_bricks_SOURCES = xlators/cluster/replicate/test-replicate-new-bricks.c \
	xlators/cluster/replicate/test-replicas.h xlators/cluster/test-rolls.h $(TEST_STARVING_REALLOC)
xlators_cluster_replicate_test_replicate_new_bricks_LDFLAGS = $(WRAP_FOR_STARVING_REALLOC)
xlators_cluster_replicate_test_replicate_new_bricks_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-names
xlators_cluster_replicate_test_replicate_names_SOURCES = xlators/cluster/replicate/test-replicate-names.c \
	$(TEST_REPLICA_CHANGES) $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_names_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_replicate_test_replicate_names_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-events
xlators_cluster_replicate_test_replicate_events_SOURCES = xlators/cluster/replicate/test-replicate-events.c \
	xlators/cluster/replicate/test-replicas.h $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_events_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_replicate_test_replicate_events_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-blocks
xlators_cluster_replicate_test_replicate_blocks_SOURCES = xlators/cluster/replicate/test-replicate-blocks.c \
	xlators/cluster/replicate/test-replicas.h $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_blocks_LDFLAGS = $(WRAP_FOR_STARVING) -Wl,--wrap=sem_wait
xlators_cluster_replicate_test_replicate_blocks_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/test-heal-throttle
xlators_cluster_test_heal_throttle_SOURCES = xlators/cluster/test-heal-throttle.c \
	xlators/cluster/test-clients.h xlators/cluster/replicate/test-replicas.h $(TEST_STARVING)
xlators_cluster_test_heal_throttle_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_test_heal_throttle_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-turns
xlators_cluster_replicate_test_replicate_turns_SOURCES = xlators/cluster/replicate/test-replicate-turns.c \
	xlators/cluster/replicate/test-replicas.h $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_turns_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_replicate_test_replicate_turns_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-lies
xlators_cluster_replicate_test_replicate_lies_SOURCES = xlators/cluster/replicate/test-replicate-lies.c \
	$(TEST_REPLICA_CHANGES) $(TEST_LIES) $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_lies_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_replicate_test_replicate_lies_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-new-files
xlators_cluster_replicate_test_replicate_new_files_SOURCES = xlators/cluster/replicate/test-replicate-new-files.c \
	$(TEST_REPLICA_CHANGES) $(TEST_STARVING)
xlators_cluster_replicate_test_replicate_new_files_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_replicate_test_replicate_new_files_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/replicate/test-replicate-dead-folders
xlators_cluster_replicate_test_replicate_dead_folders_SOURCES = \
	xlators/cluster/replicate/test-replicate-dead-folders.c xlators/cluster/test-notes.h $(TEST_REPLICA_CHANGES) $(TEST_STARVING_REALLOC)
xlators_cluster_replicate_test_replicate_dead_folders_LDFLAGS = $(WRAP_FOR_STARVING_REALLOC)
xlators_cluster_replicate_test_replicate_dead_folders_LDADD = $(TEST_LIBS)
