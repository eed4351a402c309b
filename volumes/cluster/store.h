/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* store: the small key-value store that the hosts of a cluster share. etcd keeps it (API v3, JSON over HTTP).
 *
 *     /kiln/format          {"format": 1}: a store of a newer format is refused
 *     /kiln/layout          put by each change of hosts and bricks, so that two such changes never cross
 *     /kiln/authority       {"certificate"}: hosts prove themselves by certificates of it (host-proof.h)
 *     /kiln/hosts/NAME      a host of the cluster; stays while the host is down
 *     /kiln/alive/NAME      the same host while its kilnd runs: bound to a lease
 *     /kiln/volumes/NAME    a volume (volume.h)
 *     /kiln/jobs/ID         a job over several hosts, and /kiln/job-owner/ID its owner (cluster-jobs.h)
 *     /kiln/ages/HOST       the ages of a host's bricks (brick-age.h)
 *     /kiln/usage/HOST/NAME usage of a volume's bricks on a host (quota-hosts.h); leased
 *     /kiln/ask/HOST/ID     a question to a host, and /kiln/answer/HOST/ID its answer (cluster-ask.h); leased
 *
 * A change is one transaction: all its keys change, or none, and each key that the change was made from must
 * still have the revision that its writer has seen.
 *
 * The keys above are names without the prefix "/kiln/", which the location may replace.
 *
 * Why JSON over HTTP: gRPC's libraries would be the largest part of kilnd. libcurl is loaded for the first
 * store, so a kilnd without a store has neither the library nor its memory.
 *
 * thread: any that may wait, several at once. A call tries the members in turn, and lasts STORE_TRY_MS for
 * each at most.
 */
#ifndef KILN_VOLUMES_STORE_H
#define KILN_VOLUMES_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volumes/problem.h"

#define STORE_TRY_MS 4000
#define STORE_MEMBERS_MAX 16
#define STORE_VALUE_MAX (1 << 20) /* bytes; etcd refuses requests above 1.5 MB */

struct store;

struct store_options {
    /* etcd://[USER@]HOST:PORT[,HOST:PORT]...[/PREFIX]; etcds:// is the same over TLS */
    const char *location;
    const char *password_file; /* the password of USER is the first line; NULL: none */
    const char *ca, *cert, *key; /* files, for etcds://. All NULL: glusterfs.ca, .pem and .key
                                   * in /usr/lib/ssl or /etc/ssl, else the system's authorities */
};

/* Checks the location and loads libcurl, without a connection. The texts are copied. Returns NULL with *why:
 * -EINVAL, -ELIBACC, -ENOMEM, or the error of the password file. */
struct store *store_open(const struct store_options *o, struct problem *why);
void store_close(struct store *s);
/* The location without user, for messages. */
const char *store_location(const struct store *s);

/* Functions below return 0 or -errno with *why. -EAGAIN: no member answers, or the members have no leader.
 * -EACCES: the store refuses the user. -EPROTO: an answer that is not etcd's. */

/* *text: the value, which the caller frees; NULL: there is no such key, with *revision 0. */
int store_get(struct store *s, const char *key, char **text, int64_t *revision, struct problem *why);
/* Calls fn for each key with this prefix. `key` is a name without the store's prefix. *at: the revision of
 * the whole store. */
int store_list(struct store *s, const char *prefix,
               void (*fn)(const char *key, const char *text, int64_t revision, void *arg), void *arg,
               int64_t *at, struct problem *why);

#define STORE_ANY_REVISION (-1)
struct store_change {
    const char *key;
    const char *text; /* NULL: the key is deleted */
    int64_t from;     /* the key must have this revision; 0: must not exist; STORE_ANY_REVISION */
    int64_t lease;    /* 0: none */
};
/* Makes all changes or none. *at (NULL allowed): the new revision of each key that was put. -ESTALE: a key
 * has another revision, and nothing was changed. When the answer is lost, the function reads the first key
 * and returns 0 if that key has its new value. */
int store_change(struct store *s, const struct store_change *changes, size_t count, int64_t *at,
                 struct problem *why);

/* Lets the store forget the values that were former ones at revision `at`. */
int store_forget(struct store *s, int64_t at, struct problem *why);

/* A lease ends `seconds` after its last renewal, and with it all keys that are bound to the lease. */
int store_lease(struct store *s, unsigned seconds, int64_t *lease, struct problem *why);
/* -ENOENT: the lease has ended. */
int store_renew(struct store *s, int64_t lease, struct problem *why);
int store_end_lease(struct store *s, int64_t lease, struct problem *why);

struct store_watch {
    /* A key was put (`text` is valid during the call) or deleted (NULL). */
    void (*seen)(const char *key, const char *text, int64_t revision, void *arg);
    /* Asked about once a second: false ends the watch. */
    bool (*goes_on)(void *arg);
    void *arg;
};
/* Calls w->seen for each change after revision *at, in order, and moves *at on, until the connection ends.
 * -ENODATA: the store has dropped changes after *at, and the caller must list everything again. 0: w->goes_on
 * has ended the watch, or another member answers now. */
int store_watch(struct store *s, int64_t *at, const struct store_watch *w, struct problem *why);

#endif
