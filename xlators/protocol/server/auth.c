/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/protocol/server/auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refcount.h"
#include "data/option.h"
#include "event/worker.h"

#define PORT_PRIVILEGED_MAX 1023

enum verdict { DONT_CARE, ACCEPT, REJECT };

struct auth_rules {
    struct refcount refs;
    size_t count;
    struct {
        char *key, *value;
    } rows[];
};

static bool
starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* ---- the options ----------------------------------------------------------------------------- */

struct auth_rules *
auth_rules_new(const struct option_value *options, size_t count)
{
    struct auth_rules *r = calloc(1, sizeof *r + count * sizeof r->rows[0]);

    if (!r)
        return NULL;
    refcount_init(&r->refs, 1);
    for (size_t i = 0; i < count; i++) {
        if (!starts_with(options[i].key, "auth."))
            continue;
        size_t n = r->count++;
        r->rows[n].key = strdup(options[i].key);
        r->rows[n].value = strdup(options[i].value);
        if (!r->rows[n].key || !r->rows[n].value) {
            auth_rules_unref(r);
            return NULL;
        }
    }
    return r;
}

struct auth_rules *
auth_rules_ref(struct auth_rules *r)
{
    refcount_get(&r->refs);
    return r;
}

void
auth_rules_unref(struct auth_rules *r)
{
    if (!r || !refcount_put(&r->refs))
        return;
    for (size_t i = 0; i < r->count; i++) {
        free(r->rows[i].key);
        free(r->rows[i].value);
    }
    free(r);
}

/* Returns the value of `auth.MODULE.NAME.WHAT`; the last one given wins. */
static const char *
auth_option(const struct auth_rules *r, const char *module, const char *name, const char *what)
{
    const char *value = NULL;
    size_t m = strlen(module), n = strlen(name);

    for (size_t i = 0; i < r->count; i++) {
        const char *key = r->rows[i].key + strlen("auth.");

        if (strncmp(key, module, m) == 0 && key[m] == '.' && strncmp(key + m + 1, name, n) == 0 &&
            key[m + 1 + n] == '.' && strcmp(key + m + n + 2, what) == 0)
            value = r->rows[i].value;
    }
    return value;
}

static bool
takes_part(const struct auth_rules *r, const char *prefix)
{
    for (size_t i = 0; i < r->count; i++)
        if (starts_with(r->rows[i].key, prefix))
            return true;
    return false;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* An address in a form that compares both families: 16 bytes, IPv4 in its mapped form. */
struct address {
    uint8_t b[16];
    bool is_v4, is_known;
    char text[INET6_ADDRSTRLEN];
};

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

static void
address_from_v4(struct address *a, const void *v4)
{
    memcpy(a->b, v4_prefix, sizeof v4_prefix);
    memcpy(a->b + 12, v4, 4);
    a->is_v4 = a->is_known = true;
    inet_ntop(AF_INET, v4, a->text, sizeof a->text);
}

static void
address_from_v6(struct address *a, const void *v6)
{
    if (memcmp(v6, v4_prefix, sizeof v4_prefix) == 0) {
        address_from_v4(a, (const uint8_t *)v6 + 12);
        return;
    }
    memcpy(a->b, v6, 16);
    a->is_known = true;
    inet_ntop(AF_INET6, v6, a->text, sizeof a->text);
}

static struct address
address_from_sockaddr(const struct sockaddr *sa)
{
    struct address a = {0};

    if (sa->sa_family == AF_INET)
        address_from_v4(&a, &((const struct sockaddr_in *)sa)->sin_addr);
    else if (sa->sa_family == AF_INET6)
        address_from_v6(&a, &((const struct sockaddr_in6 *)sa)->sin6_addr);
    return a;
}

static struct address
address_parse(const char *text)
{
    struct address a = {0};
    uint8_t bytes[16];

    if (inet_pton(AF_INET, text, bytes) == 1)
        address_from_v4(&a, bytes);
    else if (inet_pton(AF_INET6, text, bytes) == 1)
        address_from_v6(&a, bytes);
    return a;
}

/* Parses ADDRESS/BITS. */
static bool
cidr_parse(const char *entry, struct address *a, unsigned long *bits)
{
    char net[INET6_ADDRSTRLEN + 1], *end;
    const char *slash = strchr(entry, '/');
    size_t len = (size_t)(slash - entry);

    if (len >= sizeof net)
        return false;
    memcpy(net, entry, len);
    net[len] = '\0';
    *a = address_parse(net);
    *bits = strtoul(slash + 1, &end, 10);
    return a->is_known && slash[1] >= '0' && slash[1] <= '9' && !*end && *bits <= (a->is_v4 ? 32 : 128);
}

static bool
cidr_matches(const char *entry, const struct address *peer)
{
    struct address a;
    unsigned long bits;

    if (!peer->is_known || !cidr_parse(entry, &a, &bits) || a.is_v4 != peer->is_v4)
        return false;
    bits += a.is_v4 ? 96 : 0;
    if (memcmp(a.b, peer->b, bits / 8) != 0)
        return false;
    unsigned mask = 0xff00u >> bits % 8 & 0xff;
    return bits % 8 == 0 || (a.b[bits / 8] & mask) == (peer->b[bits / 8] & mask);
}

/* -ENOMEM: the result is unknown. */
static int
host_matches(const char *entry, const struct address *peer)
{
    struct address a = address_parse(entry);

    if (!peer->is_known || strpbrk(entry, "*?[]"))
        return false;
    if (a.is_known)
        return memcmp(a.b, peer->b, sizeof a.b) == 0;

    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    bool is_match = false;

    worker_block_begin();
    int err = getaddrinfo(entry, NULL, &hints, &list);
    worker_block_end();
    if (err) /* a name that does not resolve now matches no peer, as in stock */
        return err == EAI_MEMORY ? -ENOMEM : false;
    for (struct addrinfo *i = list; i && !is_match; i = i->ai_next) {
        a = address_from_sockaddr(i->ai_addr);
        is_match = a.is_known && memcmp(a.b, peer->b, sizeof a.b) == 0;
    }
    freeaddrinfo(list);
    return is_match;
}

/* Modifies `list`. A `!` negates its entry and the entries behind it, except host names. -ENOMEM: the result
 * is unknown. */
static int
list_matches(char *list, const char *separators, const struct address *peer)
{
    bool is_negated = false;
    char *save = NULL;

    for (char *entry = strtok_r(list, separators, &save); entry; entry = strtok_r(NULL, separators, &save)) {
        if (*entry == '!') {
            is_negated = true;
            entry++;
        }
        if (!*entry)
            continue;
        bool is_match = strchr(entry, '/') ? cidr_matches(entry, peer) : fnmatch(entry, peer->text, 0) == 0;
        if (is_match != is_negated)
            return true;
        int is_host = is_negated || strchr(entry, '/') ? false : host_matches(entry, peer);
        if (is_host != false)
            return is_host;
    }
    return false;
}

/* Compares paths as the walk to the folder reads them: the number of slashes between names does not matter.
 * Spaces around an entry are ignored. */
static bool
is_same_folder(const char *entry, const char *path)
{
    entry += strspn(entry, " ");
    for (;;) {
        entry += strspn(entry, "/");
        path += strspn(path, "/");
        size_t n = strcspn(path, "/"), m = strcspn(entry, "/");

        while (m > 0 && entry[m - 1] == ' ' && entry[m] == '\0')
            m--;
        if (n != m || strncmp(entry, path, n) != 0)
            return false;
        if (n == 0)
            return true;
        entry += m;
        path += n;
    }
}

/* `/(*),/sub(10.0.0.1|10.0.0.2)`: the list in brackets belongs to the directory before it, which the client
 * mounts. A directory without a list lets no client in. */
static int
subdir_list_matches(char *list, const char *subdir, const struct address *peer)
{
    for (char *at = list, *next; *at; at = next) {
        char *open = strchr(at, '('), *comma = strchr(at, ',');

        if (!open || (comma && comma < open)) { /* no list */
            next = comma ? comma + 1 : at + strlen(at);
            continue;
        }
        char *close = strchr(open, ')');
        if (!close)
            return false;
        *open = *close = '\0';
        next = close + 1;
        next += *next == ',';
        if (is_same_folder(at, subdir))
            return list_matches(open + 1, "| ", peer);
    }
    return false;
}

/* -ENOMEM: the result is unknown. */
static int
addresses_match(const char *option, const char *subdir, const struct address *peer)
{
    char *list = option ? strdup(option) : NULL;
    int is_match;

    if (!option)
        return false;
    if (!list)
        return -ENOMEM;
    if (*list == '/' || strchr(list, '('))
        is_match = subdir_list_matches(list, subdir, peer);
    else
        is_match = list_matches(list, ", ", peer);
    free(list);
    return is_match;
}

/* ---- invalid lists --------------------------------------------------------------------------- */

/* They are reported when the options are set, because a skipped reject list would let clients in. */

static bool
entries_are_sound(char *list, const char *separators)
{
    struct address a;
    unsigned long bits;
    char *save = NULL;

    for (char *entry = strtok_r(list, separators, &save); entry; entry = strtok_r(NULL, separators, &save)) {
        entry += *entry == '!';
        if (strchr(entry, '/') && !cidr_parse(entry, &a, &bits))
            return false;
    }
    return true;
}

static bool
folders_are_sound(char *list)
{
    for (char *at = list; (at = strpbrk(at, "()"));) {
        char *close = strpbrk(at + 1, "()");

        if (*at == ')' || !close || *close == '(')
            return false;
        *close = '\0';
        if (!entries_are_sound(at + 1, "| "))
            return false;
        at = close + 1;
    }
    return true;
}

static bool
is_address_list(const char *key)
{
    const char *dot = strrchr(key, '.');

    return starts_with(key, "auth.addr.") && (strcmp(dot, ".allow") == 0 || strcmp(dot, ".reject") == 0);
}

const char *
auth_rules_flaw(const struct auth_rules *r)
{
    for (size_t i = 0; i < r->count; i++) {
        char *list = is_address_list(r->rows[i].key) ? strdup(r->rows[i].value) : NULL;
        bool is_by_folder = list && (*list == '/' || strchr(list, '('));

        if (!list && is_address_list(r->rows[i].key))
            return r->rows[i].key;
        bool is_sound = !list || (is_by_folder ? folders_are_sound(list) : entries_are_sound(list, ", "));
        free(list);
        if (!is_sound)
            return r->rows[i].key;
    }
    return NULL;
}

static enum verdict
check_addr(const struct auth_rules *rules, const struct auth_question *q)
{
    const struct sockaddr *sa = (const struct sockaddr *)q->peer;
    struct address peer = address_from_sockaddr(sa);
    uint16_t port = 0;

    if (sa->sa_family == AF_INET)
        port = ntohs(((const struct sockaddr_in *)sa)->sin_port);
    else if (sa->sa_family == AF_INET6)
        port = ntohs(((const struct sockaddr_in6 *)sa)->sin6_port);
    if (!q->allow_insecure && port > PORT_PRIVILEGED_MAX)
        return REJECT;
    /* Without memory no client is let in. */
    if (addresses_match(auth_option(rules, "addr", q->brick, "reject"), q->subdir, &peer) != 0)
        return REJECT;
    int is_allowed = addresses_match(auth_option(rules, "addr", q->brick, "allow"), q->subdir, &peer);
    return is_allowed < 0 ? REJECT : is_allowed ? ACCEPT : DONT_CARE;
}

/* ---- names and passwords --------------------------------------------------------------------- */

/* -ENOMEM: the result is unknown. */
static int
user_is_listed(const char *option, const char *username)
{
    bool is_match = false;
    char *list = strdup(option), *save = NULL;

    if (!list)
        return -ENOMEM;
    for (char *p = strtok_r(list, " ,", &save); p && !is_match; p = strtok_r(NULL, " ,", &save))
        is_match = fnmatch(p, username, 0) == 0;
    free(list);
    return is_match;
}

/* Takes constant time for passwords of one length. */
static bool
is_same_secret(const char *a, const char *b)
{
    size_t len = strlen(a);

    return strlen(b) == len && CRYPTO_memcmp(a, b, len) == 0;
}

/* The password of the volfile that glusterd gives to programs of the volume. */
static enum verdict
check_password(const struct auth_rules *rules, const struct auth_question *q)
{
    enum verdict otherwise = q->is_strict ? REJECT : DONT_CARE;
    const char *allow = auth_option(rules, "login", q->brick, "allow");

    int is_known = q->username && q->password && allow ? user_is_listed(allow, q->username) : false;
    if (is_known < 0) /* -ENOMEM must reject, because a wrong password rejects too */
        return REJECT;
    if (!is_known)
        return otherwise;
    const char *password = auth_option(rules, "login", q->username, "password");
    return password && is_same_secret(q->password, password) ? ACCEPT : REJECT;
}

/* With TLS the certificate's name decides (gluster11 4.4). Without a list, names have no say. */
static enum verdict
check_tls_name(const struct auth_rules *rules, const struct auth_question *q)
{
    const char *allow = auth_option(rules, "login", q->brick, "ssl-allow");

    if (!allow)
        return q->is_strict ? REJECT : DONT_CARE;
    return user_is_listed(allow, q->tls_name) == true ? ACCEPT : REJECT;
}

bool
auth_check(const struct auth_rules *rules, const struct auth_question *q, bool *is_trusted)
{
    enum verdict addr = takes_part(rules, "auth.addr.") ? check_addr(rules, q) : DONT_CARE;
    enum verdict password = takes_part(rules, "auth.login.") ? check_password(rules, q) : DONT_CARE;
    enum verdict login = !takes_part(rules, "auth.login.") ? DONT_CARE
                         : q->tls_name                     ? check_tls_name(rules, q)
                                                           : password;

    *is_trusted = password == ACCEPT;
    return addr != REJECT && login != REJECT && (addr == ACCEPT || login == ACCEPT);
}

const char *
auth_refusal(const struct auth_rules *rules, const struct auth_question *q)
{
    struct address peer = address_from_sockaddr((const struct sockaddr *)q->peer);

    if (takes_part(rules, "auth.login.") && q->tls_name && check_tls_name(rules, q) == REJECT)
        return "auth.ssl-allow does not name the client's certificate";
    if (takes_part(rules, "auth.login.") && !q->tls_name && check_password(rules, q) == REJECT)
        return q->is_strict ? "server.strict-auth-accept is on, and the client has no password of the volume"
                            : "the client sent a wrong password of the volume";
    if (!takes_part(rules, "auth.addr."))
        return "the volume has no auth.allow";
    if (addresses_match(auth_option(rules, "addr", q->brick, "reject"), q->subdir, &peer) != 0)
        return "auth.reject names the address";
    if (check_addr(rules, q) == REJECT)
        return "server.allow-insecure is off, and the client's port is above 1023";
    return "auth.allow does not name the address";
}

void
auth_peer_text(const struct sockaddr_storage *peer, char out[AUTH_PEER_TEXT])
{
    struct address a = address_from_sockaddr((const struct sockaddr *)peer);

    snprintf(out, AUTH_PEER_TEXT, "%s", a.is_known ? a.text : "a local socket");
}
