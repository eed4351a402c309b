/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/front.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "event/pump.h"
#include "log/log.h"
#include "rpc/server/rpc-server.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-identity.h"
#include "volumes/cluster/cluster.h"
#include "volumes/heal/healer.h"
#include "volumes/heal/rebalance.h"
#include "volumes/hooks.h"
#include "volumes/quota.h"
#include "volumes/verbs/verbs.h"
#include "volumes/volfile-server.h"
#include "volumes/volumes.h"

static void
volume_changed(const char *volume)
{
    healer_follow(volume);
    rebalance_follow(volume);
    quotas_follow(volume);
    rpc_tell_volfiles_changed(); /* every client checks by itself whether its volfile has changed */
}

static int
problem_to_text(const struct problem *why, char *error, size_t size)
{
    snprintf(error, size, "%s%s%s%s%s", why->wrong, *why->expected ? "; expected: " : "", why->expected,
             *why->type ? "; try: " : "", why->type);
    return why->err;
}

int
front_open(const char *state_dir, unsigned hook_deadline_s, const struct cluster_options *shared,
           int (*prepare)(struct volfile *v, char *error, size_t error_size), char *error, size_t error_size)
{
    hooks_begin(state_dir, hook_deadline_s ? hook_deadline_s : HOOKS_DEADLINE_S);
    const struct volumes_hooks hooks = {
        .prepare = prepare, .changed = volume_changed, .heals = cluster_heals};
    struct problem why = {0};

    quotas_begin();
    if (mkdir(FRONT_SOCKET_DIR, 0755) < 0 && errno != EEXIST)
        log_event(LOG_WARNING, NULL, "socket-folder", FRONT_SOCKET_DIR ": %s", strerror(errno));
    brick_host_begin(shared ? shared->host : "");
    int err = volumes_open(state_dir, &hooks, &why);
    err = err ? err : shared ? cluster_open(shared, &why) : cluster_check_plain(state_dir, &why);
    return err ? problem_to_text(&why, error, error_size) : 0;
}

void
front_attach(void)
{
    volumes_attach();
}

int
front_listen(uint16_t port, uint16_t brick_port, char *error, size_t error_size)
{
    int err = volfile_server_start(port, brick_port, error, error_size);
    struct problem why;

    if (err)
        return err;
    healer_begin(brick_port);
    rebalance_begin(brick_port);
    if (volumes_each_name(healer_follow, &why) || volumes_each_name(rebalance_follow, &why) ||
        volumes_each_name(quotas_follow, &why))
        return problem_to_text(&why, error, error_size);
    if (cluster_is_on() && cluster_start(brick_port, &why))
        return problem_to_text(&why, error, error_size);
    verbs_begin(port);
    return 0;
}

void
front_quiet(void)
{
    cluster_quiet();
}

void
front_stop(void)
{
    cluster_stop();
    healer_stop();
    rebalance_end();
    quotas_stop();
    pumps_stop(); /* callbacks of ended children have returned now */
    volfile_server_stop();
}

void
front_close(void)
{
    volfile_server_free();
    volumes_close();
    cluster_close();
}
