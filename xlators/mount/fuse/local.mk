# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
# An archive of its own, because only programs that mount have libfuse.
noinst_LIBRARIES += libkiln-fuse.a
libkiln_fuse_a_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE_CFLAGS)
libkiln_fuse_a_SOURCES = \
	xlators/mount/fuse/attr.c \
	xlators/mount/fuse/data.c \
	xlators/mount/fuse/dir.c \
	xlators/mount/fuse/entry.c \
	xlators/mount/fuse/folder.c \
	xlators/mount/fuse/fuse.c \
	xlators/mount/fuse/fuse.h \
	xlators/mount/fuse/fuse-internal.h \
	xlators/mount/fuse/groups.c \
	xlators/mount/fuse/lock.c \
	xlators/mount/fuse/meta.c \
	xlators/mount/fuse/mounted-as.c \
	xlators/mount/fuse/news.c \
	xlators/mount/fuse/node.c \
	xlators/mount/fuse/privs.c \
	xlators/mount/fuse/saved.c \
	xlators/mount/fuse/switch.c \
	xlators/mount/fuse/task.c \
	xlators/mount/fuse/xattr.c

# The kernel's side of the device (test-kernel.h) over a brick in memory.
TEST_KERNEL = xlators/mount/fuse/test-kernel.c xlators/mount/fuse/test-kernel.h $(TEST_STARVING)
WRAP_FOR_KERNEL = $(WRAP_FOR_STARVING) -Wl,--wrap=open64,--wrap=mount,--wrap=umount2,--wrap=read,--wrap=writev,--wrap=event_add,--wrap=event_modify,--wrap=event_remove,--wrap=usleep,--wrap=sem_wait,--wrap=realloc,--wrap=fuse_session_custom_io,--wrap=mem_owner_audit

check_PROGRAMS += xlators/mount/fuse/test-fuse-requests
xlators_mount_fuse_test_fuse_requests_SOURCES = xlators/mount/fuse/test-fuse-requests.c $(TEST_KERNEL)
xlators_mount_fuse_test_fuse_requests_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_requests_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_requests_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)

check_PROGRAMS += xlators/mount/fuse/test-fuse-mount
xlators_mount_fuse_test_fuse_mount_SOURCES = xlators/mount/fuse/test-fuse-mount.c $(TEST_KERNEL)
xlators_mount_fuse_test_fuse_mount_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_mount_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_mount_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)

check_PROGRAMS += xlators/mount/fuse/test-fuse-switch
xlators_mount_fuse_test_fuse_switch_SOURCES = xlators/mount/fuse/test-fuse-switch.c $(TEST_KERNEL)
xlators_mount_fuse_test_fuse_switch_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_switch_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_switch_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)

check_PROGRAMS += xlators/mount/fuse/test-fuse-files
xlators_mount_fuse_test_fuse_files_SOURCES = xlators/mount/fuse/test-fuse-files.c $(TEST_KERNEL)
xlators_mount_fuse_test_fuse_files_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_files_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_files_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)

check_PROGRAMS += xlators/mount/fuse/test-fuse-listings
xlators_mount_fuse_test_fuse_listings_SOURCES = xlators/mount/fuse/test-fuse-listings.c $(TEST_KERNEL)
xlators_mount_fuse_test_fuse_listings_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_listings_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_listings_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)

check_PROGRAMS += xlators/mount/fuse/test-fuse-meta
xlators_mount_fuse_test_fuse_meta_SOURCES = xlators/mount/fuse/test-fuse-meta.c $(TEST_KERNEL)
xlators_mount_fuse_test_fuse_meta_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_meta_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_meta_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)

check_PROGRAMS += xlators/mount/fuse/test-fuse-callers
xlators_mount_fuse_test_fuse_callers_SOURCES = xlators/mount/fuse/test-fuse-callers.c $(TEST_KERNEL)
xlators_mount_fuse_test_fuse_callers_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_callers_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_callers_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)

# A mount that a newer program takes over.
TEST_HANDOVER = xlators/mount/fuse/test-handover.c xlators/mount/fuse/test-handover.h $(TEST_KERNEL)

check_PROGRAMS += xlators/mount/fuse/test-fuse-freeze
xlators_mount_fuse_test_fuse_freeze_SOURCES = xlators/mount/fuse/test-fuse-freeze.c $(TEST_HANDOVER)
xlators_mount_fuse_test_fuse_freeze_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_freeze_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_freeze_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)

check_PROGRAMS += xlators/mount/fuse/test-fuse-saved
xlators_mount_fuse_test_fuse_saved_SOURCES = xlators/mount/fuse/test-fuse-saved.c $(TEST_HANDOVER)
xlators_mount_fuse_test_fuse_saved_CPPFLAGS = $(libkiln_fuse_a_CPPFLAGS)
xlators_mount_fuse_test_fuse_saved_LDFLAGS = $(WRAP_FOR_KERNEL)
xlators_mount_fuse_test_fuse_saved_LDADD = libkiln-fuse.a $(TEST_LIBS) $(FUSE_LIBS)
