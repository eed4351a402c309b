# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
# Volumes as values and as files: no bricks, no sockets.
VOLUME_STATE_SOURCES = \
	volumes/brick-host.c \
	volumes/brick-host.h \
	volumes/problem.c \
	volumes/problem.h \
	volumes/state-dir.c \
	volumes/state-dir.h \
	volumes/volfile-text.c \
	volumes/volfile-text.h \
	volumes/volume-options.c \
	volumes/volume-options.h \
	volumes/volume-task.c \
	volumes/volume-task.h \
	volumes/volume.c \
	volumes/volume.h
VOLUME_SOURCES = $(VOLUME_STATE_SOURCES) \
	volumes/bricks/brick-call.c \
	volumes/bricks/brick-call.h \
	volumes/bricks/brick-jobs.c \
	volumes/bricks/brick-jobs.h \
	volumes/bricks/brick-place.c \
	volumes/bricks/brick-place.h \
	volumes/bricks/brick-marks.c \
	volumes/bricks/brick-marks.h \
	volumes/bricks/brick-plan.c \
	volumes/bricks/brick-plan.h \
	volumes/bricks/fragments.c \
	volumes/bricks/fragments.h \
	volumes/heal/heal-pending.c \
	volumes/heal/heal-pending.h \
	volumes/volumes.c \
	volumes/volumes-bricks.c \
	volumes/volumes-coming.c \
	volumes/volumes-create.c \
	volumes/volumes-paths.c \
	volumes/volumes-set.c \
	volumes/volumes.h \
	volumes/volumes-internal.h
kilnd_SOURCES += $(VOLUME_SOURCES) \
	volumes/cluster/brick-age.c \
	volumes/cluster/brick-age.h \
	volumes/bricks/brick-check.c \
	volumes/bricks/brick-check.h \
	volumes/bricks/brick-path.c \
	volumes/bricks/brick-path.h \
	volumes/heal/child-log.c \
	volumes/heal/child-log.h \
	volumes/bricks/clear-locks.c \
	volumes/cluster/cluster-ask.c \
	volumes/cluster/cluster-ask.h \
	volumes/cluster/cluster-bricks.c \
	volumes/cluster/cluster-bricks.h \
	volumes/cluster/cluster-change.c \
	volumes/cluster/cluster-change.h \
	volumes/cluster/cluster-copy.c \
	volumes/cluster/cluster-hosts.c \
	volumes/cluster/cluster-internal.h \
	volumes/cluster/cluster-identity.c \
	volumes/cluster/cluster-identity.h \
	volumes/cluster/cluster-jobs-internal.h \
	volumes/cluster/cluster-jobs.c \
	volumes/cluster/cluster-jobs.h \
	volumes/cluster/cluster-look.c \
	volumes/cluster/cluster-look.h \
	volumes/cluster/cluster-place.c \
	volumes/cluster/cluster-place.h \
	volumes/cluster/cluster-quota.c \
	volumes/cluster/cluster-quota.h \
	volumes/cluster/cluster-register.c \
	volumes/cluster/cluster-register.h \
	volumes/cluster/cluster.c \
	volumes/cluster/cluster.h \
	volumes/cluster/curl-library.c \
	volumes/cluster/curl-library.h \
	volumes/cluster/store-etcd.c \
	volumes/cluster/store-history.c \
	volumes/cluster/store-history.h \
	volumes/cluster/store.h \
	volumes/verbs/verb-host.c \
	volumes/verbs/verb-move.c \
	volumes/verbs/verb-top.c \
	volumes/verbs/verb-store.c \
	volumes/hooks.c \
	volumes/cluster/host-proof.c \
	volumes/cluster/host-proof.h \
	volumes/hooks.h \
	volumes/bricks/clear-locks.h \
	volumes/front.c \
	volumes/front.h \
	volumes/heal/heal-watch.c \
	volumes/heal/heal-watch.h \
	volumes/heal/healer.c \
	volumes/heal/healer.h \
	volumes/verbs/verb-heal.c \
	volumes/cluster/job-drain.c \
	volumes/cluster/job-heal.c \
	volumes/cluster/job-rebalance.c \
	volumes/cluster/job-upgrade.c \
	volumes/own-host.c \
	volumes/own-host.h \
	volumes/bricks/profile.c \
	volumes/cluster/quota-hosts.c \
	volumes/cluster/quota-hosts.h \
	volumes/quota-rows.c \
	volumes/quota-rows.h \
	volumes/quota.c \
	volumes/quota.h \
	volumes/heal/rebalance.c \
	volumes/heal/rebalance.h \
	volumes/verbs/verb-rebalance.c \
	volumes/shut-out.c \
	volumes/shut-out.h \
	volumes/tls-files.c \
	volumes/tls-files.h \
	volumes/bricks/profile.h \
	volumes/verbs/verbs-ask.c \
	volumes/verbs/verbs-change.c \
	volumes/verbs/verbs-internal.h \
	volumes/verbs/verbs-process.c \
	volumes/verbs/verbs.c \
	volumes/verbs/verbs.def \
	volumes/verbs/verbs.h \
	volumes/volumes-take.c \
	volumes/volfile-server.c \
	volumes/volfile-server.h

check_PROGRAMS += volumes/test-volumes volumes/test-volume-texts volumes/test-quota-rows volumes/cluster/test-host-proof
volumes_cluster_test_host_proof_SOURCES = volumes/cluster/test-host-proof.c volumes/cluster/host-proof.c volumes/problem.c
volumes_cluster_test_host_proof_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
volumes_test_quota_rows_SOURCES = volumes/test-quota-rows.c volumes/quota-rows.c
volumes_test_quota_rows_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
volumes_test_volume_texts_SOURCES = volumes/test-volume-texts.c $(VOLUME_STATE_SOURCES)
volumes_test_volume_texts_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
volumes_test_volumes_SOURCES = volumes/test-volumes.c $(VOLUME_SOURCES) bricks/bricks.c glusterfsd/brick-types.c
volumes_test_volumes_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
# Calls that change a disk, so that a test can end the process before each.
volumes_test_volumes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=write,--wrap=fsync,--wrap=renameat,--wrap=unlinkat \
	-Wl,--wrap=mkdirat,--wrap=mkdir,--wrap=rmdir,--wrap=fsetxattr,--wrap=fremovexattr
