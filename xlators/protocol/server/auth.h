/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* auth: decides which clients may log in to a brick, by the auth.* options of its volfile (spec: wire 3.4).
 *
 * Two modules, addr and login. Each takes part if an option with its prefix exists, and answers accept,
 * reject or "don't care". If any module rejects, the login is refused. Otherwise one accept is enough. If
 * both answer "don't care", the login is refused.
 *
 * thread: any; auth_check() may block in the resolver
 */
#ifndef KILN_PROTOCOL_SERVER_AUTH_H
#define KILN_PROTOCOL_SERVER_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct option_value;

/* A copy of the auth.* options of a section. Refcounted, immutable. */
struct auth_rules;

/* NULL: no memory. */
struct auth_rules *auth_rules_new(const struct option_value *options, size_t count);
struct auth_rules *auth_rules_ref(struct auth_rules *r);
void auth_rules_unref(struct auth_rules *r); /* NULL allowed */

/* Returns the key of an address list that cannot be parsed: a bracket that is not closed, an invalid
 * ADDRESS/BITS (or no memory). NULL: all lists are valid. */
const char *auth_rules_flaw(const struct auth_rules *r);

struct auth_question {
    const char *brick;                   /* the B of auth.addr.B.allow */
    const struct sockaddr_storage *peer; /* AF_UNIX matches only patterns such as `*` */
    const char *username, *password;     /* NULL: not given */
    const char *tls_name; /* common name of the client's certificate; NULL: the connection is plain */
    const char *subdir;                  /* "/" or a path */
    bool allow_insecure;                 /* permits source ports above 1023 */
    bool is_strict;                      /* login must accept */
};

/* Returns true if the login is accepted; *is_trusted tells whether a username was verified. May ask the
 * resolver if a list has host names. */
bool auth_check(const struct auth_rules *rules, const struct auth_question *q, bool *is_trusted);
/* Names, for the log, the option of the volume by which auth_check() refuses this login. May ask the
 * resolver. */
const char *auth_refusal(const struct auth_rules *rules, const struct auth_question *q);
/* Puts the address of a client into `out`, "a local socket" for one without. */
#define AUTH_PEER_TEXT 64
void auth_peer_text(const struct sockaddr_storage *peer, char out[AUTH_PEER_TEXT]);

#endif
