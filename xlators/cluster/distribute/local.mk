# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/cluster/distribute/all.c \
	xlators/cluster/distribute/calls.c \
	xlators/cluster/distribute/create.c \
	xlators/cluster/distribute/distribute.c \
	xlators/cluster/distribute/distribute-internal.h \
	xlators/cluster/distribute/file.c \
	xlators/cluster/distribute/folder.c \
	xlators/cluster/distribute/hash.c \
	xlators/cluster/distribute/hash.h \
	xlators/cluster/distribute/heal.c \
	xlators/cluster/distribute/heal-place.c \
	xlators/cluster/distribute/layout.c \
	xlators/cluster/distribute/layout.h \
	xlators/cluster/distribute/linkto.c \
	xlators/cluster/distribute/lookup.c \
	xlators/cluster/distribute/migrate.c \
	xlators/cluster/distribute/migrate-calls.c \
	xlators/cluster/distribute/migrate-copy.c \
	xlators/cluster/distribute/migrate-internal.h \
	xlators/cluster/distribute/migrate.h \
	xlators/cluster/distribute/migrate-names.c \
	xlators/cluster/distribute/mkdir.c \
	xlators/cluster/distribute/names.c \
	xlators/cluster/distribute/place.c \
	xlators/cluster/distribute/readdir.c \
	xlators/cluster/distribute/rebalance.c \
	xlators/cluster/distribute/rebalance.h \
	xlators/cluster/distribute/rename.c \
	xlators/cluster/distribute/settle.c \
	xlators/cluster/distribute/rmdir.c \
	xlators/cluster/distribute/space.c

check_PROGRAMS += xlators/cluster/distribute/test-hash xlators/cluster/distribute/test-layout
xlators_cluster_distribute_test_hash_SOURCES = xlators/cluster/distribute/test-hash.c
xlators_cluster_distribute_test_hash_LDADD = $(TEST_LIBS)
xlators_cluster_distribute_test_layout_SOURCES = xlators/cluster/distribute/test-layout.c
xlators_cluster_distribute_test_layout_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-distribute-faults
xlators_cluster_distribute_test_distribute_faults_SOURCES = xlators/cluster/distribute/test-distribute-faults.c $(TEST_CHILDREN)
xlators_cluster_distribute_test_distribute_faults_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_distribute_test_distribute_faults_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-migrate
xlators_cluster_distribute_test_migrate_SOURCES = xlators/cluster/distribute/test-migrate.c $(TEST_CHILDREN)
xlators_cluster_distribute_test_migrate_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_distribute_test_migrate_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-migrate-replicas
xlators_cluster_distribute_test_migrate_replicas_SOURCES = xlators/cluster/distribute/test-migrate-replicas.c $(TEST_CHILDREN)
xlators_cluster_distribute_test_migrate_replicas_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_distribute_test_migrate_replicas_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-distribute-all
xlators_cluster_distribute_test_distribute_all_SOURCES = xlators/cluster/distribute/test-distribute-all.c $(TEST_LIES) $(TEST_STARVING)
xlators_cluster_distribute_test_distribute_all_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_distribute_test_distribute_all_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-distribute-states
xlators_cluster_distribute_test_distribute_states_SOURCES = xlators/cluster/distribute/test-distribute-states.c \
	xlators/cluster/distribute/test-distribute-calls.h $(TEST_STARVING)
xlators_cluster_distribute_test_distribute_states_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_distribute_test_distribute_states_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-distribute-subvolumes
xlators_cluster_distribute_test_distribute_subvolumes_SOURCES = \
	xlators/cluster/distribute/test-distribute-subvolumes.c \
	xlators/cluster/distribute/test-distribute-calls.h $(TEST_STARVING)
xlators_cluster_distribute_test_distribute_subvolumes_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_distribute_test_distribute_subvolumes_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-distribute-rebalance
xlators_cluster_distribute_test_distribute_rebalance_SOURCES = xlators/cluster/distribute/test-distribute-rebalance.c $(TEST_STARVING)
xlators_cluster_distribute_test_distribute_rebalance_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_distribute_test_distribute_rebalance_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-distribute-clients
xlators_cluster_distribute_test_distribute_clients_SOURCES = xlators/cluster/distribute/test-distribute-clients.c \
	xlators/cluster/test-rolls.h $(TEST_STARVING)
xlators_cluster_distribute_test_distribute_clients_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_distribute_test_distribute_clients_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-distribute-settle
xlators_cluster_distribute_test_distribute_settle_SOURCES = xlators/cluster/distribute/test-distribute-settle.c $(TEST_STARVING)
xlators_cluster_distribute_test_distribute_settle_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_distribute_test_distribute_settle_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-migrate-states
xlators_cluster_distribute_test_migrate_states_SOURCES = xlators/cluster/distribute/test-migrate-states.c $(TEST_STARVING)
xlators_cluster_distribute_test_migrate_states_LDFLAGS = $(WRAP_FOR_STARVING)
xlators_cluster_distribute_test_migrate_states_LDADD = $(TEST_LIBS)

check_PROGRAMS += xlators/cluster/distribute/test-rebalance-throttle
xlators_cluster_distribute_test_rebalance_throttle_SOURCES = xlators/cluster/distribute/test-rebalance-throttle.c \
	xlators/cluster/test-clients.h $(TEST_CHILDREN)
xlators_cluster_distribute_test_rebalance_throttle_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_cluster_distribute_test_rebalance_throttle_LDADD = $(TEST_LIBS)

EXTRA_DIST += xlators/cluster/distribute/test-subvolumes.h
