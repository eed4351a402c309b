# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/cluster/disperse/all.c \
	xlators/cluster/disperse/answers.c \
	xlators/cluster/disperse/child-options.c \
	xlators/cluster/disperse/child-options.h \
	xlators/cluster/disperse/codec.c \
	xlators/cluster/disperse/codec.h \
	xlators/cluster/disperse/codec-kernel.h \
	xlators/cluster/disperse/counters.c \
	xlators/cluster/disperse/debt.c \
	xlators/cluster/disperse/crawl.c \
	xlators/cluster/disperse/crawl-tree.c \
	xlators/cluster/disperse/crawl.h \
	xlators/cluster/disperse/dead-objects.c \
	xlators/cluster/disperse/disperse.c \
	xlators/cluster/disperse/doubts.c \
	xlators/cluster/disperse/disperse-internal.h \
	xlators/cluster/disperse/entry.c \
	xlators/cluster/disperse/fan.c \
	xlators/cluster/disperse/heal.c \
	xlators/cluster/disperse/heal-data.c \
	xlators/cluster/disperse/heal-block.c \
	xlators/cluster/disperse/heal-data.h \
	xlators/cluster/disperse/heal-entry.c \
	xlators/cluster/disperse/heal-mend.c \
	xlators/cluster/disperse/heal-move.c \
	xlators/cluster/disperse/heal.h \
	xlators/cluster/disperse/hold.c \
	xlators/cluster/disperse/index-list.c \
	xlators/cluster/disperse/locks.c \
	xlators/cluster/disperse/lookup.c \
	xlators/cluster/disperse/metadata.c \
	xlators/cluster/disperse/open-files.c \
	xlators/cluster/disperse/read.c \
	xlators/cluster/disperse/read-times.c \
	xlators/cluster/disperse/read-times.h \
	xlators/cluster/disperse/readdir.c \
	xlators/cluster/disperse/write.c

check_PROGRAMS += xlators/cluster/disperse/test-codec
xlators_cluster_disperse_test_codec_SOURCES = xlators/cluster/disperse/test-codec.c
xlators_cluster_disperse_test_codec_LDADD = $(TEST_LIBS)
EXTRA_DIST += xlators/cluster/disperse/vectors

check_PROGRAMS += xlators/cluster/disperse/test-disperse-faults
xlators_cluster_disperse_test_disperse_faults_SOURCES = xlators/cluster/disperse/test-disperse-faults.c \
	xlators/cluster/disperse/test-disperse-file.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_faults_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_faults_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-hostile
xlators_cluster_disperse_test_disperse_hostile_SOURCES = xlators/cluster/disperse/test-disperse-hostile.c $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_hostile_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_hostile_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-joined
xlators_cluster_disperse_test_disperse_joined_SOURCES = xlators/cluster/disperse/test-disperse-joined.c \
	xlators/cluster/disperse/test-disperse-file.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_joined_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_joined_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-names
xlators_cluster_disperse_test_disperse_names_SOURCES = xlators/cluster/disperse/test-disperse-names.c \
	xlators/cluster/disperse/test-disperse-file.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_names_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_names_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-dead-objects
xlators_cluster_disperse_test_disperse_dead_objects_SOURCES = \
	xlators/cluster/disperse/test-disperse-dead-objects.c xlators/cluster/disperse/test-disperse-file.h \
	xlators/cluster/test-notes.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_dead_objects_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_dead_objects_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-random
xlators_cluster_disperse_test_disperse_random_SOURCES = xlators/cluster/disperse/test-disperse-random.c \
	xlators/cluster/disperse/test-disperse-file.h xlators/cluster/test-notes.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_random_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_random_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-quorum
xlators_cluster_disperse_test_disperse_quorum_SOURCES = xlators/cluster/disperse/test-disperse-quorum.c \
	xlators/cluster/disperse/test-disperse-file.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_quorum_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_quorum_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-renames
xlators_cluster_disperse_test_disperse_renames_SOURCES = xlators/cluster/disperse/test-disperse-renames.c \
	xlators/cluster/disperse/test-disperse-file.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_renames_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_renames_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-versions
xlators_cluster_disperse_test_disperse_versions_SOURCES = xlators/cluster/disperse/test-disperse-versions.c \
	xlators/cluster/disperse/test-disperse-file.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_versions_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_versions_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-disperse-throttle
xlators_cluster_disperse_test_disperse_throttle_SOURCES = xlators/cluster/disperse/test-disperse-throttle.c \
	xlators/cluster/test-clients.h $(TEST_CHILDREN)
xlators_cluster_disperse_test_disperse_throttle_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_disperse_test_disperse_throttle_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/disperse/test-read-times
xlators_cluster_disperse_test_read_times_SOURCES = xlators/cluster/disperse/test-read-times.c
xlators_cluster_disperse_test_read_times_LDADD = $(TEST_LIBS)
