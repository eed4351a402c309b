/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "glusterfsd/questions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/http.h"
#include "event/timer.h"
#include "glusterfsd/http-routes.h"
#include "glusterfsd/kilnd.h"
#include "log/log.h"

enum { AGAIN_MS = 5000 };

/* Names of the configuration file that another kilnd has; NULL: none. The timer's alone while the timer is
 * armed. */
static const char *wanted_socket, *wanted_address;
static struct timer again;
static bool is_timed; /* `again` is initialised */

/* ---- the names of the file ------------------------------------------------------------------- */

static int
listen_for_metrics(const char *address)
{
    uint16_t port;
    int err = http_listen_tcp(address, http_routes, &port);

    if (!err)
        log_event(LOG_INFO, NULL, "metrics-listening", "metrics at %s, port %u", address, port);
    return err;
}

static void
claim_addresses(struct timer *t)
{
    if (wanted_socket && http_listen_unix(wanted_socket, http_routes) == 0) {
        log_event(LOG_INFO, NULL, "management-socket-taken", "this kilnd answers at %s now", wanted_socket);
        wanted_socket = NULL;
    }
    if (wanted_address && listen_for_metrics(wanted_address) == 0)
        wanted_address = NULL;
    if (wanted_socket || wanted_address)
        timer_start(t, AGAIN_MS);
}

static void
take_over_later(void)
{
    if (!wanted_socket && !wanted_address)
        return;
    timer_init(&again, claim_addresses);
    is_timed = true;
    timer_start(&again, AGAIN_MS);
}

/* ---- listening ------------------------------------------------------------------------------- */

/* Makes the folder of the socket: nothing else makes /run/kiln under a glusterd. */
static void
make_socket_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];

    if (slash && slash > path && slash - path < (int)sizeof folder) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        (void)mkdir(folder, 0755); /* binding the socket tells of a failure */
    }
}

static int
listen_at_own(const char *path)
{
    char own[4096];

    snprintf(own, sizeof own, "%s.%ld", path, (long)getpid());
    int err = http_listen_unix(own, http_routes);
    if (!err) {
        log_event(LOG_INFO, NULL, "management-socket-own",
                  "%s belongs to another kilnd: this kilnd answers at %s until that one ends", path, own);
        wanted_socket = path;
    }
    return err;
}

static int
listen_at_socket(const struct kilnd_options *o)
{
    if (o->is_socket_shared)
        make_socket_folder(o->management_path);
    int err = http_listen_unix(o->management_path, http_routes);
    return err == -EADDRINUSE && o->is_socket_shared ? listen_at_own(o->management_path) : err;
}

static int
listen_at_address(const struct kilnd_options *o)
{
    int err = listen_for_metrics(o->metrics_address);

    if (err != -EADDRINUSE || !o->is_address_shared)
        return err;
    log_event(
        LOG_WARNING, NULL, "metrics-address-taken",
        "%s is in use: /metrics does not show the bricks of this process until the address is free; one "
        "process serves all bricks with: gluster volume set all cluster.brick-multiplex on",
        o->metrics_address);
    wanted_address = o->metrics_address;
    return 0;
}

int
questions_listen(const struct kilnd_options *o, char *error, size_t error_size)
{
    int err = o->management_path ? listen_at_socket(o) : 0;

    if (err) {
        snprintf(error, error_size, "--management-socket %s: %s", o->management_path, strerror(-err));
        return err;
    }
    err = o->metrics_address ? listen_at_address(o) : 0;
    if (err)
        snprintf(error, error_size, "--metrics-address %s: %s", o->metrics_address, strerror(-err));
    else
        take_over_later();
    return err;
}

bool
questions_stop(void)
{
    if (is_timed)
        (void)timer_stop(&again);
    return http_stop();
}
