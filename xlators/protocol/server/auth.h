/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* auth: who may log in to a brick, by the auth.* options of its volfile (spec: wire 3.4).
 *
 * Two modules, addr and login. Each takes part if an option with its prefix exists and says accept, reject or
 * "don't care". Any reject: refused. Else one accept is enough. Only "don't care": refused.
 */
#ifndef KILN_PROTOCOL_SERVER_AUTH_H
#define KILN_PROTOCOL_SERVER_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct option_value;

/* A copy of a section's auth.* options. Refcounted, immutable. */
struct auth_rules;

/* NULL: no memory. */
struct auth_rules *auth_rules_new(const struct option_value *options, size_t count);
struct auth_rules *auth_rules_ref(struct auth_rules *r);
void auth_rules_unref(struct auth_rules *r); /* NULL allowed */

/* The key of an address list that cannot be read: a bracket that is not closed, ADDRESS/BITS that are none
 * (or no memory). NULL: all can. */
const char *auth_rules_flaw(const struct auth_rules *r);

struct auth_question {
    const char *brick;                   /* the B of auth.addr.B.allow */
    const struct sockaddr_storage *peer; /* AF_UNIX matches only patterns such as `*` */
    const char *username, *password;     /* NULL: not given */
    const char *subdir;                  /* "/" or a path */
    bool allow_insecure;                 /* source ports above 1023 are all right */
    bool is_strict;                      /* login must accept */
};

/* True: accepted; *is_trusted tells whether a username was verified. May ask the resolver if a list names
 * hosts. */
bool auth_check(const struct auth_rules *rules, const struct auth_question *q, bool *is_trusted);

#endif
