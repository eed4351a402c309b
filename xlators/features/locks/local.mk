# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/features/locks/locks-internal.h \
	xlators/features/locks/locks.c \
	xlators/features/locks/saved.c \
	xlators/features/locks/lock-queue.c \
	xlators/features/locks/lock-tree.c \
	xlators/features/locks/lock-domain.c \
	xlators/features/locks/inodelk.c \
	xlators/features/locks/entrylk.c \
	xlators/features/locks/posixlk.c \
	xlators/features/locks/removal.c \
	xlators/features/locks/unfinished.c \
	xlators/features/locks/contention.c \
	xlators/features/locks/counts.c \
	xlators/features/locks/clrlk.c \
	xlators/features/locks/lockinfo.c \
	xlators/features/locks/lock-dump.c

check_PROGRAMS += xlators/features/locks/test-posixlk xlators/features/locks/test-locks \
	xlators/features/locks/test-lock-queue
xlators_features_locks_test_posixlk_SOURCES = xlators/features/locks/test-posixlk.c xlators/features/test-layers.h
xlators_features_locks_test_posixlk_LDADD = $(TEST_LIBS)
xlators_features_locks_test_locks_SOURCES = xlators/features/locks/test-locks.c xlators/features/test-layers.h
xlators_features_locks_test_locks_LDADD = $(TEST_LIBS)
xlators_features_locks_test_lock_queue_SOURCES = xlators/features/locks/test-lock-queue.c xlators/features/test-layers.h
xlators_features_locks_test_lock_queue_LDADD = $(TEST_LIBS)
