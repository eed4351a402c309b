/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/protocol/server/door.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/reason.h"

static struct {
    pthread_mutex_t lock; /* guards all below */
    struct tls_config *config; /* of the bricks with TLS; NULL: there is none */
    unsigned with_tls, plain;  /* bricks */
    char first[256];           /* the brick that has brought the config, for errors */
} door = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A graph that replaces the only one with TLS, as after a change of its options, brings its own files. */
static bool
may_replace_locked(const char *brick)
{
    return door.with_tls == 0 || (door.with_tls == 1 && strcmp(door.first, brick) == 0);
}

static int
enter_tls_locked(const char *brick, struct tls_config *config, struct reason *why)
{
    bool is_same = door.config && tls_config_is_same(door.config, config);

    if (!is_same && !may_replace_locked(brick))
        return reason_set(
            why, -EBUSY,
            "the ssl-* options name other files than those of brick %s, which has the same port: "
            "all bricks with TLS of a process need the same",
            door.first);
    if (!is_same) {
        tls_config_unref(door.config);
        door.config = tls_config_ref(config);
        snprintf(door.first, sizeof door.first, "%s", brick);
    }
    door.with_tls++;
    return 0;
}

int
door_enter(const char *brick, const struct tls_options *tls, struct reason *why)
{
    struct tls_config *config = tls->is_on ? tls_options_config(tls, NULL) : NULL;
    int err = !tls->is_on ? 0 : config ? tls_config_load(config, why) : -ENOMEM;

    pthread_mutex_lock(&door.lock);
    if (!tls->is_on)
        door.plain++;
    else if (!err)
        err = enter_tls_locked(brick, config, why);
    pthread_mutex_unlock(&door.lock);
    tls_config_unref(config);
    return err;
}

void
door_leave(bool has_tls)
{
    struct tls_config *unused = NULL;

    pthread_mutex_lock(&door.lock);
    if (!has_tls) {
        door.plain--;
    } else if (--door.with_tls == 0) {
        unused = door.config;
        door.config = NULL;
    }
    pthread_mutex_unlock(&door.lock);
    tls_config_unref(unused);
}

struct tls_config *
door_config(bool *allows_plain)
{
    pthread_mutex_lock(&door.lock);
    struct tls_config *config = door.config ? tls_config_ref(door.config) : NULL;

    *allows_plain = door.plain > 0;
    pthread_mutex_unlock(&door.lock);
    return config;
}
