# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
sbin_PROGRAMS += kiln-mount
kiln_mount_SOURCES = \
	mount/helper.c \
	mount/helper.h \
	mount/kiln-mount.c \
	mount/kiln-mount.h \
	mount/mount.c \
	mount/mount.h \
	mount/options.c \
	mount/place.c \
	mount/place.h \
	mount/records.c \
	mount/records.h \
	mount/shared.c \
	mount/shared.h \
	mount/spec.c \
	mount/spec.h \
	mount/types.c \
	mount/types.h \
	mount/volume.c \
	glusterfsd/daemon.c \
	glusterfsd/daemon.h \
	glusterfsd/statedump.c \
	glusterfsd/statedump-options.c \
	glusterfsd/statedump-options.h \
	xlators/mount/fuse/attr.c \
	xlators/mount/fuse/data.c \
	xlators/mount/fuse/dir.c \
	xlators/mount/fuse/entry.c \
	xlators/mount/fuse/folder.c \
	xlators/mount/fuse/news.c \
	xlators/mount/fuse/fuse.c \
	xlators/mount/fuse/fuse.h \
	xlators/mount/fuse/fuse-internal.h \
	xlators/mount/fuse/lock.c \
	xlators/mount/fuse/meta.c \
	xlators/mount/fuse/privs.c \
	xlators/mount/fuse/groups.c \
	xlators/mount/fuse/node.c \
	xlators/mount/fuse/switch.c \
	xlators/mount/fuse/task.c \
	xlators/mount/fuse/xattr.c
kiln_mount_CPPFLAGS = $(AM_CPPFLAGS) $(FUSE_CFLAGS)
kiln_mount_LDADD = $(ALLOCATOR_LIBS) $(KILN_LIBS) $(FUSE_LIBS)

check_PROGRAMS += mount/test-helper
mount_test_helper_SOURCES = mount/test-helper.c mount/helper.c mount/helper.h
mount_test_helper_LDADD = $(TEST_LIBS)

check_PROGRAMS += mount/test-mount
mount_test_mount_SOURCES = mount/test-mount.c mount/mount.c mount/mount.h mount/place.c
mount_test_mount_LDFLAGS = -Wl,--wrap=thread_start -Wl,--wrap=pthread_mutex_lock
mount_test_mount_LDADD = $(TEST_LIBS)

check_PROGRAMS += mount/test-shared
mount_test_shared_SOURCES = mount/test-shared.c mount/shared.c mount/shared.h
mount_test_shared_LDADD = $(TEST_LIBS)

# mount(8) looks for its helpers in /sbin only.
install-exec-hook:
	$(MKDIR_P) "$(DESTDIR)$(mounthelperdir)"
	ln -sf "$(sbindir)/kiln-mount" "$(DESTDIR)$(mounthelperdir)/mount.kiln"
uninstall-hook:
	rm -f "$(DESTDIR)$(mounthelperdir)/mount.kiln"
