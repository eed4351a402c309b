/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "bricks/management.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urcu/list.h>

#include "base/parcel.h"
#include "bricks/bricks.h"
#include "graph/graph.h"
#include "log/log.h"
#include "rpc/client/glusterd-calls.h"
#include "rpc/transport/tls-config.h"
#include "rpc/xdr/callback-program.h"

enum { EXIT_NOT_CONNECTED = 107, RETRY_MS = 3000, COLLECT_S = 10, ERROR_BYTES = 1024 };

enum fetch { FETCH_NONE, FETCH_UNDER_WAY, FETCH_AGAIN /* under way, and its volfile may be old */ };

struct managed {
    struct cds_list_head link;
    char *name; /* NULL: the first brick, before its volfile arrives */
    char *id;
    char *id_before; /* while an attach is under way: the id of the serving brick; NULL: none */
    enum fetch fetch;
    bool has_digest;
    struct volfile_digest digest; /* of the volfile that the brick got last */
    char *text; /* of the volfile, for the next program; NULL: not collected */
    size_t text_bytes;
};

/* A brick of the earlier program. `text` is NULL if glusterd has to be asked. */
struct restored {
    char *id, *text;
    size_t text_bytes;
};

static struct {
    struct management_options options;
    struct rpc_client *client; /* written by start and stop */
    pthread_mutex_t lock;      /* for the members below */
    pthread_cond_t changed;
    struct cds_list_head bricks;
    const char *first_id;      /* the main thread waits for this volfile */
    struct volfile *first;
    bool has_answer;           /* to that fetch, or a failure to connect */
    int exit_status;
    char error[ERROR_BYTES];
    unsigned sign_ins;         /* not answered yet */
    bool has_signed_in;        /* the main thread's */
    unsigned collecting;       /* fetches for the next program that are not answered yet */
    struct restored *restored; /* the main thread's */
    unsigned restored_count;
    bool is_gone;
} m = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .bricks = CDS_LIST_HEAD_INIT(m.bricks),
};

/* ---- the list -------------------------------------------------------------------------------- */

static struct managed *
find_locked(const char *name)
{
    struct managed *b;

    cds_list_for_each_entry(b, &m.bricks, link)
        if (strcmp(b->name, name) == 0)
            return b;
    return NULL;
}

static void
free_managed(struct managed *b)
{
    free(b->name);
    free(b->id);
    free(b->id_before);
    free(b->text);
    free(b);
}

int
management_add(const char *brick, const char *id)
{
    struct managed *b = calloc(1, sizeof *b);

    if (!b || !(b->name = strdup(brick)) || !(b->id = strdup(id))) {
        if (b)
            free_managed(b);
        return -ENOMEM;
    }
    pthread_mutex_lock(&m.lock);
    struct managed *old = find_locked(brick);
    if (old) {
        free(old->id_before);
        old->id_before = old->id;
        old->id = b->id;
        b->id = NULL;
        old->has_digest = false;
        free(old->text);
        old->text = NULL;
    } else {
        cds_list_add_tail(&b->link, &m.bricks);
    }
    pthread_mutex_unlock(&m.lock);
    if (old)
        free_managed(b);
    return 0;
}

/* Takes the brick out of the list. NULL: no such brick. */
static struct managed *
remove_managed(const char *brick, bool *is_last)
{
    pthread_mutex_lock(&m.lock);
    struct managed *b = find_locked(brick);

    if (b)
        cds_list_del(&b->link);
    *is_last = cds_list_empty(&m.bricks);
    pthread_mutex_unlock(&m.lock);
    return b;
}

/* Gives the brick its former id. */
static void
restore(const char *brick)
{
    pthread_mutex_lock(&m.lock);
    struct managed *b = find_locked(brick);

    if (b && b->id_before) {
        free(b->id);
        b->id = b->id_before;
        b->id_before = NULL;
    }
    pthread_mutex_unlock(&m.lock);
}

static bool
was_there_before(const char *brick)
{
    pthread_mutex_lock(&m.lock);
    struct managed *b = find_locked(brick);
    bool was = b && b->id_before;
    pthread_mutex_unlock(&m.lock);
    return was;
}

void
management_not_attached(const char *brick, bool is_served)
{
    bool is_last;

    if (is_served) {
        restore(brick);
    } else if (was_there_before(brick)) {
        (void)management_remove(brick, &is_last);
    } else {
        struct managed *b = remove_managed(brick, &is_last);

        if (b)
            free_managed(b);
    }
}

/* Names of all bricks, in one block of memory for the caller to free. NULL: no memory, or no bricks. */
static char **
all_names(unsigned *count)
{
    size_t bytes = 0;
    struct managed *b;
    unsigned n = 0;

    pthread_mutex_lock(&m.lock);
    cds_list_for_each_entry(b, &m.bricks, link) {
        bytes += strlen(b->name) + 1;
        n++;
    }
    char **names = malloc(n * sizeof *names + bytes), *at = (char *)(names + n);
    n = 0;
    if (names) {
        cds_list_for_each_entry(b, &m.bricks, link) {
            names[n++] = at;
            at = stpcpy(at, b->name) + 1;
        }
    }
    pthread_mutex_unlock(&m.lock);
    *count = n;
    return names;
}

static void
each_name(void (*fn)(const char *name))
{
    unsigned count;
    char **names = all_names(&count);

    for (unsigned i = 0; i < count; i++)
        fn(names[i]);
    free(names);
}

/* ---- port map -------------------------------------------------------------------------------- */

static void
sign_in_answered(struct rpc_reply *r, void *arg)
{
    int err = portmap_sign_reply(r);

    (void)arg;
    if (err && err != -ENOTCONN) /* the connection after a lost connection signs in again */
        log_event(LOG_ERROR, NULL, "management-sign-in", "glusterd refuses to sign in a brick: %s",
                  strerror(-err));
    pthread_mutex_lock(&m.lock);
    m.sign_ins -= m.sign_ins > 0; /* no thread waits for the answers of a new connection */
    pthread_cond_broadcast(&m.changed);
    pthread_mutex_unlock(&m.lock);
}

static void
sign_out_answered(struct rpc_reply *r, void *arg)
{
    (void)r;
    (void)arg; /* the brick goes, and no answer can change that */
}

/* Without a connection the brick is signed in when there is one. */
static void
sign_in(const char *brick)
{
    int err = portmap_signin(m.client, brick, m.options.brick_port, getpid(), sign_in_answered, NULL);

    if (err && err != -ENOTCONN)
        log_event(LOG_ERROR, NULL, "management-sign-in-call", "brick %s is not signed in: %s", brick,
                  strerror(-err));
}

/* glusterd learns by other ways of the end of a process that cannot reach glusterd. A process that was
 * started without glusterd signs nothing out. */
static void
sign_out(const char *brick)
{
    int err =
        m.client ? portmap_signout(m.client, brick, m.options.brick_port, sign_out_answered, NULL) : 0;

    if (err && err != -ENOTCONN)
        log_event(LOG_WARNING, NULL, "management-sign-out-call", "brick %s is not signed out: %s", brick,
                  strerror(-err));
}

bool
management_remove(const char *brick, bool *is_last)
{
    struct managed *b = remove_managed(brick, is_last);

    if (!b)
        return false;
    sign_out(b->name);
    free_managed(b);
    return true;
}

/* ---- volfiles -------------------------------------------------------------------------------- */

static void fetch(const char *name);

static void
fetch_has_ended(const char *name, const struct volfile_digest *told)
{
    pthread_mutex_lock(&m.lock);
    struct managed *b = find_locked(name);
    bool is_old = b && b->fetch == FETCH_AGAIN;

    if (b && told) {
        b->digest = *told;
        b->has_digest = true;
    }
    if (b)
        b->fetch = FETCH_NONE;
    pthread_mutex_unlock(&m.lock);
    if (is_old)
        fetch(name);
}

struct change {
    struct volfile_digest digest;
    char name[];
};

static void
reconfigured(int err, const char *error, void *arg)
{
    struct change *c = arg;

    if (err < 0)
        log_event(LOG_ERROR, NULL, "management-volfile-refused", "brick %s keeps its options: %s", c->name,
                  error);
    else if (err > 0)
        log_event(LOG_WARNING, NULL, "management-options-but-some",
                  "brick %s has the options of its new volfile, but %d that were refused", c->name, err);
    else
        log_event(LOG_INFO, NULL, "management-options", "brick %s has the options of its new volfile",
                  c->name);
    fetch_has_ended(c->name, err < 0 ? NULL : &c->digest);
    free(c);
}

static bool
is_known(const char *name, const struct volfile_digest *digest)
{
    pthread_mutex_lock(&m.lock);
    struct managed *b = find_locked(name);
    bool is = !b || (b->has_digest && memcmp(&b->digest, digest, sizeof *digest) == 0);
    pthread_mutex_unlock(&m.lock);
    return is;
}

/* Takes the volfile over. */
static void
change_options(const char *name, struct volfile *v)
{
    const struct volfile_digest digest = volfile_digest(v);
    size_t len = strlen(name) + 1;
    struct change *c = NULL;

    if (is_known(name, &digest)) {
        volfile_free(v);
        fetch_has_ended(name, NULL);
        return;
    }
    c = malloc(sizeof *c + len);
    if (c) {
        c->digest = digest;
        memcpy(c->name, name, len);
    }
    int err = c ? bricks_post_volfile(BRICK_FOLLOW, v, name, reconfigured, c) : -ENOMEM;
    if (!err)
        return;
    if (!c)
        volfile_free(v);
    free(c);
    log_event(LOG_ERROR, NULL, "management-volfile-post", "brick %s keeps its options: %s", name,
              strerror(-err));
    fetch_has_ended(name, NULL);
}

/* The volfile in a reply, prepared. NULL with a reason and errno. */
static struct volfile *
read_reply(struct rpc_reply *r, const char *id, int *err, char *error, size_t size)
{
    struct arena arena = {0};
    struct glusterd_spec spec;
    struct volfile *v = NULL;

    *err = glusterd_getspec_reply(r, &arena, &spec);
    if (*err) {
        snprintf(error, size, "no volfile %s from glusterd: %s", id, strerror(-*err));
    } else if (!(v = volfile_parse(id, spec.text, spec.bytes, error, size))) {
        *err = -EINVAL;
    } else if ((*err = m.options.prepare(v, error, size))) {
        volfile_free(v);
        v = NULL;
    }
    arena_release(&arena);
    return v;
}

static void
fetched(struct rpc_reply *r, void *arg)
{
    char *name = arg, error[ERROR_BYTES] = "";
    int err;
    struct volfile *v = read_reply(r, name, &err, error, sizeof error);

    if (v) {
        change_options(name, v);
    } else {
        if (err != -ENOTCONN) /* the next connection fetches again */
            log_event(LOG_ERROR, NULL, "management-volfile", "brick %s keeps its options: %s", name, error);
        fetch_has_ended(name, NULL);
    }
    free(name);
}

/* True: the caller sends; id is a copy. */
static bool
begin_fetch(const char *name, char **id)
{
    bool begins = false;

    pthread_mutex_lock(&m.lock);
    struct managed *b = find_locked(name);
    if (b && b->fetch == FETCH_NONE && (*id = strdup(b->id))) {
        b->fetch = FETCH_UNDER_WAY;
        begins = true;
    } else if (b && b->fetch == FETCH_UNDER_WAY) {
        b->fetch = FETCH_AGAIN;
    }
    pthread_mutex_unlock(&m.lock);
    return begins;
}

static void
fetch(const char *name)
{
    char *id, *copy;

    if (!begin_fetch(name, &id))
        return;
    copy = strdup(name);
    int err = copy ? glusterd_getspec(m.client, id, m.options.brick_name, fetched, copy) : -ENOMEM;
    free(id);
    if (!err)
        return;
    free(copy);
    if (err != -ENOTCONN)
        log_event(LOG_ERROR, NULL, "management-fetch", "brick %s: its volfile is not fetched: %s", name,
                  strerror(-err));
    pthread_mutex_lock(&m.lock);
    struct managed *b = find_locked(name);
    if (b)
        b->fetch = FETCH_NONE;
    pthread_mutex_unlock(&m.lock);
}

void
management_refetch(void)
{
    if (m.client)
        each_name(fetch);
}

/* ---- the first volfile ----------------------------------------------------------------------- */

/* The answer to the fetch of `id`; NULL: any. The answer to an earlier fetch is dropped. */
static void
answer_main(const char *id, struct volfile *v, int exit_status, const char *error)
{
    pthread_mutex_lock(&m.lock);
    if (m.first_id && !m.has_answer && (!id || id == m.first_id)) {
        m.first = v;
        m.exit_status = exit_status;
        snprintf(m.error, sizeof m.error, "%s", error);
        m.has_answer = true;
        v = NULL;
    }
    pthread_cond_broadcast(&m.changed);
    pthread_mutex_unlock(&m.lock);
    volfile_free(v);
}

static void
first_fetched(struct rpc_reply *r, void *arg)
{
    char error[ERROR_BYTES] = "";
    int err;
    struct volfile *v = read_reply(r, arg, &err, error, sizeof error);

    answer_main(arg, v, v ? 0 : -err, error);
}

static bool
wants_first(const char **id)
{
    pthread_mutex_lock(&m.lock);
    *id = m.has_answer ? NULL : m.first_id;
    pthread_mutex_unlock(&m.lock);
    return *id != NULL;
}

static void
fetch_first(const char *id)
{
    int err = glusterd_getspec(m.client, id, m.options.brick_name, first_fetched, (void *)id);

    if (err && err != -ENOTCONN)
        answer_main(id, NULL, -err, strerror(-err));
}

/* Notes the brick of the volfile. Returns the volfile; NULL with a reason and freed: no memory. */
static struct volfile *
add_first(struct volfile *v, const char *id, int *exit_status, char *error, size_t error_size)
{
    if (management_add(graph_brick_name(v), id)) {
        snprintf(error, error_size, "no memory");
        *exit_status = EXIT_FAILURE;
        volfile_free(v);
        return NULL;
    }
    const struct volfile_digest digest = volfile_digest(v);
    fetch_has_ended(graph_brick_name(v), &digest);
    return v;
}

struct volfile *
management_first_volfile(const char *id, int *exit_status, char *error, size_t error_size)
{
    pthread_mutex_lock(&m.lock);
    m.first_id = id;
    m.has_answer = false;
    pthread_mutex_unlock(&m.lock);
    if (rpc_client_is_up(m.client))
        fetch_first(id);
    pthread_mutex_lock(&m.lock);
    while (!m.has_answer)
        pthread_cond_wait(&m.changed, &m.lock);
    struct volfile *v = m.first;
    m.first = NULL;
    m.first_id = NULL;
    *exit_status = m.exit_status;
    snprintf(error, error_size, "%s", m.error);
    pthread_mutex_unlock(&m.lock);
    return v ? add_first(v, id, exit_status, error, error_size) : NULL;
}

int
management_sign_in(void)
{
    unsigned count;
    char **names = all_names(&count);

    if (!names)
        return -ENOMEM;
    m.has_signed_in = true;
    pthread_mutex_lock(&m.lock);
    m.sign_ins = count;
    pthread_mutex_unlock(&m.lock);
    for (unsigned i = 0; i < count; i++)
        sign_in(names[i]);
    free(names);
    pthread_mutex_lock(&m.lock);
    while (m.sign_ins)
        pthread_cond_wait(&m.changed, &m.lock);
    pthread_mutex_unlock(&m.lock);
    return 0;
}

/* ---- the connection -------------------------------------------------------------------------- */

static void
connected(struct rpc_client *c, void *arg)
{
    const char *id;

    (void)arg;
    if (!rpc_client_up(c))
        return;
    if (wants_first(&id))
        fetch_first(id);
    each_name(fetch);
    each_name(sign_in);
}

static void
unreachable(struct rpc_client *c, int err, void *arg)
{
    char error[ERROR_BYTES];

    (void)arg;
    snprintf(error, sizeof error, "%s: %s", rpc_client_name(c), strerror(-err));
    answer_main(NULL, NULL, EXIT_NOT_CONNECTED, error);
}

static void
down(struct rpc_client *c, bool was_up, void *arg)
{
    char why[384], error[ERROR_BYTES];

    (void)was_up;
    (void)arg;
    rpc_client_tls_failure(c, why, sizeof why);
    if (!*why)
        return;
    snprintf(error, sizeof error, "%s: %s", rpc_client_name(c), why);
    answer_main(NULL, NULL, EXIT_NOT_CONNECTED, error);
}

/* glusterd's calls: volfiles may have changed. The other calls concern other processes. */
static void
called(struct rpc_client *c, const struct rpc_call_head *head, struct xdr *args, void *arg)
{
    (void)c;
    (void)args;
    (void)arg;
    if (head->program == CALLBACK_PROGRAM && head->procedure == CALLBACK_FETCHSPEC)
        management_refetch();
}

static void
gone(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&m.lock);
    m.is_gone = true;
    pthread_cond_broadcast(&m.changed);
    pthread_mutex_unlock(&m.lock);
}

static const struct rpc_client_ops client_ops = {
    .connected = connected, .down = down, .unreachable = unreachable, .called = called, .gone = gone};

int
management_start(const struct management_options *options)
{
    char name[512];
    int err;

    m.options = *options;
    snprintf(name, sizeof name, "glusterd at %s", options->unix_path ? options->unix_path : options->host);
    m.client = rpc_client_new(&(struct rpc_client_options){.name = name,
                                                           .where = {.host = options->host,
                                                                     .path = options->unix_path,
                                                                     .port = options->port,
                                                                     .wants_low_port = true,
                                                                     .tls = tls_management()},
                                                           .retry_min_ms = RETRY_MS,
                                                           .retry_max_ms = RETRY_MS,
                                                           .is_trusted = true},
                              &client_ops, NULL, &err);
    if (!m.client)
        return err;
    rpc_client_start(m.client);
    return 0;
}

/* ---- upgrades -------------------------------------------------------------------------------- */

static void
collected(struct rpc_reply *r, void *arg)
{
    char *name = arg;
    struct arena arena = {0};
    struct glusterd_spec spec;
    int err = glusterd_getspec_reply(r, &arena, &spec);

    pthread_mutex_lock(&m.lock);
    struct managed *b = err ? NULL : find_locked(name);

    if (b) {
        free(b->text);
        b->text = malloc(spec.bytes + 1);
        b->text_bytes = spec.bytes;
    }
    if (b && b->text)
        memcpy(b->text, spec.text, spec.bytes);
    m.collecting--;
    pthread_cond_broadcast(&m.changed);
    pthread_mutex_unlock(&m.lock);
    arena_release(&arena);
    free(name);
}

static void
collect(const char *name)
{
    char *copy = strdup(name), *id = NULL;

    pthread_mutex_lock(&m.lock);
    struct managed *b = copy ? find_locked(name) : NULL;

    if (b && (id = strdup(b->id))) {
        free(b->text);
        b->text = NULL;
        m.collecting++;
    }
    pthread_mutex_unlock(&m.lock);
    if (id && glusterd_getspec(m.client, id, m.options.brick_name, collected, copy) == 0) {
        copy = NULL;
    } else if (id) {
        pthread_mutex_lock(&m.lock);
        m.collecting--;
        pthread_mutex_unlock(&m.lock);
    }
    free(id);
    free(copy);
}

int
management_collect(void)
{
    struct timespec until;
    struct managed *b;
    int err = 0;

    if (!m.client)
        return 0;
    pthread_mutex_lock(&m.lock);
    bool is_busy = m.collecting > 0; /* glusterd has not answered the last time */
    pthread_mutex_unlock(&m.lock);
    if (is_busy)
        return -EBUSY;
    each_name(collect);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += COLLECT_S;
    pthread_mutex_lock(&m.lock);
    while (m.collecting && !err)
        err = -pthread_cond_timedwait(&m.changed, &m.lock, &until);
    cds_list_for_each_entry(b, &m.bricks, link)
        err = err ? err : b->text ? 0 : -ENOTCONN;
    pthread_mutex_unlock(&m.lock);
    return err;
}

void
management_save(struct parcel *to)
{
    size_t place = parcel_reserve_u32(to);
    uint32_t count = 0;
    struct managed *b;

    pthread_mutex_lock(&m.lock);
    cds_list_for_each_entry(b, &m.bricks, link) {
        parcel_put_text(to, b->id);
        parcel_put_bytes(to, b->text, b->text ? b->text_bytes : 0);
        count++;
    }
    pthread_mutex_unlock(&m.lock);
    parcel_set_u32(to, place, count);
}

static bool
restore_one(struct parcel *from, struct restored *one)
{
    const char *id = parcel_get_text(from);
    const void *text = parcel_get_bytes(from, &one->text_bytes);

    one->id = id ? strdup(id) : NULL;
    one->text = one->text_bytes ? malloc(one->text_bytes) : NULL;
    if (from->is_broken || !one->id || (one->text_bytes && !one->text))
        return false;
    if (one->text)
        memcpy(one->text, text, one->text_bytes);
    return true;
}

void
management_restore(struct parcel *from)
{
    uint32_t count = parcel_get_u32(from);

    for (uint32_t i = 0; i < count && !from->is_broken; i++) {
        struct restored *all = reallocarray(m.restored, i + 1, sizeof *all);

        m.restored = all ? all : m.restored;
        if (!all || !restore_one(from, &all[i]))
            from->is_broken = true;
        else
            m.restored_count = i + 1;
    }
}

const char *
management_restored_id(unsigned number)
{
    return number < m.restored_count ? m.restored[number].id : NULL;
}

struct volfile *
management_restored_volfile(unsigned number, int *exit_status, char *error, size_t error_size)
{
    struct restored *r = &m.restored[number];

    if (!r->text) /* attached after management_collect() */
        return management_first_volfile(r->id, exit_status, error, error_size);
    struct volfile *v = volfile_parse(r->id, r->text, r->text_bytes, error, error_size);

    free(r->text);
    r->text = NULL;
    *exit_status = EXIT_FAILURE;
    if (v && m.options.prepare(v, error, error_size)) {
        volfile_free(v);
        v = NULL;
    }
    return v ? add_first(v, r->id, exit_status, error, error_size) : NULL;
}

void
management_sign_out(void)
{
    if (m.client && m.has_signed_in)
        each_name(sign_out);
}

void
management_stop(void)
{
    if (!m.client)
        return;
    rpc_client_close(m.client);
    pthread_mutex_lock(&m.lock);
    while (!m.is_gone)
        pthread_cond_wait(&m.changed, &m.lock);
    while (!cds_list_empty(&m.bricks)) {
        struct managed *b = cds_list_first_entry(&m.bricks, struct managed, link);

        cds_list_del(&b->link);
        free_managed(b);
    }
    pthread_mutex_unlock(&m.lock);
    m.client = NULL;
}
