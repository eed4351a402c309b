# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libglusterfs_a_SOURCES += \
	libglusterfs/event/charge.h \
	libglusterfs/event/chore.c \
	libglusterfs/event/chore.h \
	libglusterfs/event/source.c \
	libglusterfs/event/event-internal.h \
	libglusterfs/event/pump.c \
	libglusterfs/event/pump.h \
	libglusterfs/event/pump-internal.h \
	libglusterfs/event/pump-stream.c \
	libglusterfs/event/spawner.c \
	libglusterfs/event/spawner.h \
	libglusterfs/event/timer.c \
	libglusterfs/event/timer.h \
	libglusterfs/event/worker.c \
	libglusterfs/event/worker.h

check_PROGRAMS += libglusterfs/event/test-chore libglusterfs/event/test-pump libglusterfs/event/test-pump-descriptors libglusterfs/event/test-spawner libglusterfs/event/test-timer libglusterfs/event/test-worker
libglusterfs_event_test_chore_SOURCES = libglusterfs/event/test-chore.c
libglusterfs_event_test_chore_LDADD = $(TEST_LIBS)
libglusterfs_event_test_pump_SOURCES = libglusterfs/event/test-pump.c libglusterfs/event/test-pump.h
libglusterfs_event_test_pump_LDADD = $(TEST_LIBS)
libglusterfs_event_test_pump_descriptors_SOURCES = libglusterfs/event/test-pump-descriptors.c libglusterfs/event/test-pump.h
libglusterfs_event_test_pump_descriptors_LDADD = $(TEST_LIBS)
libglusterfs_event_test_spawner_SOURCES = libglusterfs/event/test-spawner.c
libglusterfs_event_test_spawner_LDADD = $(TEST_LIBS)
libglusterfs_event_test_timer_SOURCES = libglusterfs/event/test-timer.c
libglusterfs_event_test_timer_LDADD = $(TEST_LIBS)
libglusterfs_event_test_worker_SOURCES = libglusterfs/event/test-worker.c
libglusterfs_event_test_worker_LDADD = $(TEST_LIBS)
