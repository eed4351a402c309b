/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A volume: the graph of its client's volfile, with features/hard above the layers that reach bricks, so that
 * calls survive the restart of a brick (option hard-timeout of the layer kiln-hard).
 *
 * A new volfile with the same bricks and layers changes the options of the running graph. A volfile with
 * other bricks or layers is not followed: the program goes on with the old ones, which is logged as an error.
 *
 * The volfile comes from a server that is not trusted more than by a mount: no type that a client's volfile
 * may name touches a path of this machine. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu.h>

#include "api/api-internal.h"
#include "base/thread.h"
#include "log/log.h"
#include "mount/client-volume.h"
#include "rpc/transport/transport.h"
#include "xlators/cluster/distribute/hash.h"
#include "xlators/protocol/client/client.h"

enum { GLUSTERD_PORT = 24007, API_INODES_KEPT = 1024, API_OPTIONS_MAX = 256 };
#define API_LOG_DIR "/var/log/glusterfs"

/* ---- before init ----------------------------------------------------------------------------- */

static int
volume_fail(int err)
{
    errno = err;
    return -1;
}

static bool
is_volume_name(const char *name)
{
    return name && *name && strlen(name) < 1024;
}

GFAPI struct glfs *
glfs_new(const char *volume)
{
    if (!is_volume_name(volume)) {
        errno = EINVAL;
        return NULL;
    }
    struct glfs *fs = calloc(1, sizeof *fs);
    if (!fs || !(fs->volume = strdup(volume))) {
        free(fs);
        return NULL;
    }
    fs->log_level = -1;
    pthread_mutex_init(&fs->lock, NULL);
    pthread_cond_init(&fs->changed, NULL);
    CDS_INIT_LIST_HEAD(&fs->files);
    CDS_INIT_LIST_HEAD(&fs->upcalls);
    return fs;
}

/* Returns whether options may still be set; else sets errno. */
static bool
is_before_init(struct glfs *fs)
{
    if (fs && !fs->graph)
        return true;
    errno = EINVAL;
    return false;
}

/* Writes a server in the form of spec_new(). Returns NULL with errno. */
static char *
server_text(const char *transport, const char *host, int port)
{
    bool is_unix = transport && strcmp(transport, "unix") == 0;
    char *text = NULL;
    int n;

    if (!host || !*host || port < 0 || port > UINT16_MAX || (is_unix && *host != '/') ||
        (transport && !is_unix && strcmp(transport, "tcp") != 0)) {
        errno = EINVAL;
        return NULL;
    }
    if (is_unix)
        n = asprintf(&text, "%s", host);
    else
        n = asprintf(&text, "[%s]:%d", host, port ? port : GLUSTERD_PORT);
    if (n >= 0)
        return text;
    errno = ENOMEM;
    return NULL;
}

static unsigned
find_server(const struct glfs *fs, const char *text)
{
    unsigned i = 0;

    while (i < fs->server_count && strcmp(fs->servers[i], text) != 0)
        i++;
    return i;
}

GFAPI int
glfs_set_volfile_server(struct glfs *fs, const char *transport, const char *host, int port)
{
    char *text = is_before_init(fs) ? server_text(transport, host, port) : NULL;

    if (!text)
        return -1;
    if (find_server(fs, text) < fs->server_count) { /* as given before */
        free(text);
        return 0;
    }
    if (fs->server_count == SPEC_SERVERS_MAX) {
        free(text);
        return volume_fail(E2BIG);
    }
    fs->servers[fs->server_count++] = text;
    return 0;
}

GFAPI int
glfs_unset_volfile_server(struct glfs *fs, const char *transport, const char *host, int port)
{
    char *text = is_before_init(fs) ? server_text(transport, host, port) : NULL;
    unsigned at = text ? find_server(fs, text) : 0;

    free(text);
    if (!text)
        return -1;
    if (at == fs->server_count)
        return volume_fail(ENOENT);
    free(fs->servers[at]);
    fs->server_count--;
    memmove(&fs->servers[at], &fs->servers[at + 1], (fs->server_count - at) * sizeof fs->servers[0]);
    return 0;
}

GFAPI int
glfs_set_volfile(struct glfs *fs, const char *path)
{
    char *copy = is_before_init(fs) && path ? strdup(path) : NULL;

    if (!copy)
        return path ? -1 : volume_fail(EINVAL);
    free(fs->volfile);
    fs->volfile = copy;
    return 0;
}

/* An option that comes after init is for the next volfile, as in GlusterFS's library. qemu sets one so. */
GFAPI int
glfs_set_xlator_option(struct glfs *fs, const char *pattern, const char *key, const char *value)
{
    if (!fs || !pattern || !key || !value)
        return volume_fail(EINVAL);
    struct api_option o = {strdup(pattern), strdup(key), strdup(value)};
    int err = o.pattern && o.key && o.value ? 0 : ENOMEM;

    pthread_mutex_lock(&fs->lock);
    if (!err && fs->option_count == API_OPTIONS_MAX)
        err = E2BIG;
    struct api_option *more = err ? NULL : realloc(fs->options, (fs->option_count + 1) * sizeof *more);

    if (more) {
        fs->options = more;
        fs->options[fs->option_count++] = o;
    } else {
        err = err ? err : ENOMEM;
    }
    pthread_mutex_unlock(&fs->lock);
    if (!err)
        return 0;
    free(o.pattern);
    free(o.key);
    free(o.value);
    return volume_fail(err);
}

GFAPI int
glfs_set_logging(struct glfs *fs, const char *path, int level)
{
    if (!fs || level > (int)LOG_TRACE)
        return volume_fail(EINVAL);
    char *copy = path ? strdup(path) : NULL;

    if (path && !copy)
        return -1;
    free(fs->log_path);
    fs->log_path = copy;
    fs->log_level = level;
    if (fs->graph && level >= 0)
        log_set_group_level(&fs->graph->log, true, (enum log_level)level);
    return 0;
}

/* ---- the volfile ----------------------------------------------------------------------------- */

static void start_following(struct glfs *fs);

static void
volume_text_came(void *arg, const char *text, size_t bytes)
{
    struct glfs *fs = arg;
    char *copy = malloc(bytes + 1);

    if (!copy) {
        log_event(LOG_ERROR, NULL, "gfapi-volfile-memory", "volume %s: no memory for a volfile", fs->volume);
        return;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    pthread_mutex_lock(&fs->lock);
    free(fs->text);
    fs->text = copy;
    fs->text_bytes = bytes;
    if (fs->graph)
        start_following(fs);
    pthread_cond_broadcast(&fs->changed);
    pthread_mutex_unlock(&fs->lock);
}

static void
volume_text_failed(void *arg, int err, const char *why)
{
    struct glfs *fs = arg;

    pthread_mutex_lock(&fs->lock);
    bool has_volume = fs->graph != NULL;

    fs->failure = fs->failure ? fs->failure : err;
    pthread_cond_broadcast(&fs->changed);
    pthread_mutex_unlock(&fs->lock);
    log_event(has_volume ? LOG_WARNING : LOG_ERROR, NULL, "gfapi-no-volfile", "volume %s: %s", fs->volume,
              why);
}

static const struct spec_ops volume_spec_ops = {.text = volume_text_came, .failed = volume_text_failed};

/* Returns the text of the file, or NULL with *err. */
static char *
api_read_volfile(const char *path, size_t *bytes, int *err)
{
    char error[PATH_MAX + 256];
    char *text = volfile_read_text(path, bytes, error, sizeof error);

    *err = text ? 0 : -errno;
    if (!text)
        log_event(LOG_ERROR, NULL, "gfapi-volfile-read", "volfile %s", error);
    return text;
}

/* Returns the first volfile, or NULL with *err. */
static char *
volume_first_text(struct glfs *fs, size_t *bytes, int *err)
{
    if (fs->volfile)
        return api_read_volfile(fs->volfile, bytes, err);
    struct spec *spec = spec_new((const char *const *)fs->servers, fs->server_count, GLUSTERD_PORT,
                                 fs->volume, &volume_spec_ops, fs, err);
    if (!spec)
        return NULL;
    pthread_mutex_lock(&fs->lock);
    fs->spec = spec;
    while (!fs->text && !fs->failure)
        pthread_cond_wait(&fs->changed, &fs->lock);
    char *text = fs->text;

    *bytes = fs->text_bytes;
    *err = text ? 0 : fs->failure;
    fs->text = NULL;
    pthread_mutex_unlock(&fs->lock);
    return text;
}

static int
set_process_name(struct volfile *v)
{
    char name[128];
    int err = 0;

    snprintf(name, sizeof name, "gfapi.%s", program_invocation_short_name);
    for (size_t i = 0; i < v->section_count && !err; i++) {
        if (client_is_brick(&v->sections[i]))
            err = volfile_override(v, v->sections[i].name, "process-name", name);
    }
    return err;
}

/* Returns NULL after logging the reason. */
static struct volfile *
volume_parse_text(struct glfs *fs, const char *text, size_t bytes)
{
    char error[1024] = "no memory";
    struct volfile *v = volfile_parse(fs->volume, text, bytes, error, sizeof error);
    int err = v ? client_volume_add_hard(v) : -EINVAL;

    if (v && !err)
        err = set_process_name(v);
    pthread_mutex_lock(&fs->lock);
    for (unsigned i = 0; i < fs->option_count && !err; i++)
        err = volfile_override(v, fs->options[i].pattern, fs->options[i].key, fs->options[i].value);
    pthread_mutex_unlock(&fs->lock);
    if (!err)
        return v;
    log_event(LOG_ERROR, NULL, "gfapi-volfile", "the volfile of volume %s is refused: %s", fs->volume,
              err == -EEXIST ? "the volfile has a layer named " CLIENT_HARD_NAME ", the library's own"
                             : error);
    volfile_free(v);
    return NULL;
}

/* Makes `text`, which the volume owns from now on, the volfile that glfs_get_volfile() copies. */
static void
volume_text_used(struct glfs *fs, char *text, size_t bytes)
{
    pthread_mutex_lock(&fs->lock);
    char *old = fs->used;

    fs->used = text;
    fs->used_bytes = bytes;
    pthread_mutex_unlock(&fs->lock);
    free(old);
}

GFAPI ssize_t
glfs_get_volfile(struct glfs *fs, void *out, size_t size)
{
    if (!fs || (!out && size))
        return volume_fail(EINVAL);
    pthread_mutex_lock(&fs->lock);
    ssize_t ret = fs->used_bytes <= size ? (ssize_t)size : (ssize_t)size - (ssize_t)fs->used_bytes;
    bool has_graph = fs->used != NULL;

    if (has_graph && ret >= 0 && out)
        memcpy(out, fs->used, fs->used_bytes);
    pthread_mutex_unlock(&fs->lock);
    return has_graph ? ret : volume_fail(ENOTCONN);
}

/* ---- following ------------------------------------------------------------------------------- */

/* Returns whether the volume uses the volfile now. */
static bool
volume_change(struct glfs *fs, struct volfile *v)
{
    const struct volfile_digest digest = volfile_digest(v);
    char error[1024] = "";

    if (memcmp(&digest, &fs->digest, sizeof digest) == 0) {
        volfile_free(v);
    } else if (volume_compare(fs->graph->volfile, v) == VOLUME_OTHER_BRICKS) {
        log_event(
            LOG_ERROR, NULL, "gfapi-change-not-followed",
            "volume %s has other bricks or layers now, and %s goes on with the old ones until it opens the "
            "volume again",
            fs->volume, program_invocation_short_name);
        volfile_free(v);
    } else if (graph_reconfigure(fs->graph, v, error, sizeof error)) {
        log_event(LOG_ERROR, NULL, "gfapi-volfile-refused", "volume %s keeps its options: %s", fs->volume,
                  error);
    } else {
        fs->digest = digest;
        return true;
    }
    return false;
}

/* Returns the newest volfile; NULL: none is left, and the thread must not touch the volume any more. */
static char *
next_volume_text(struct glfs *fs, size_t *bytes)
{
    pthread_mutex_lock(&fs->lock);
    char *text = fs->is_closing ? NULL : fs->text;

    *bytes = fs->text_bytes;
    if (text)
        fs->text = NULL;
    fs->is_following = text != NULL;
    pthread_cond_broadcast(&fs->changed);
    pthread_mutex_unlock(&fs->lock);
    return text;
}

static void *
follow_volume(void *arg)
{
    struct glfs *fs = arg;
    size_t bytes;

    rcu_register_thread();
    for (char *text; (text = next_volume_text(fs, &bytes));) {
        struct volfile *v = volume_parse_text(fs, text, bytes);

        if (v && volume_change(fs, v))
            volume_text_used(fs, text, bytes);
        else
            free(text);
    }
    rcu_unregister_thread();
    return NULL;
}

/* The lock is held. */
static void
start_following(struct glfs *fs)
{
    if (fs->is_following || fs->is_closing)
        return;
    int err = thread_start(follow_volume, fs);

    fs->is_following = !err;
    if (err)
        log_event(LOG_ERROR, NULL, "gfapi-no-thread", "volume %s keeps its options: %s", fs->volume,
                  strerror(-err));
}

/* ---- init ------------------------------------------------------------------------------------ */

static void
api_volume_event(struct graph *g, const struct layer_event *e)
{
    struct glfs *fs = g->maker;
    enum child_event event = e->change;

    if (e->kind == EVENT_INVALIDATED) {
        api_upcall(g, e->gfid, e->flags);
        return;
    }
    pthread_mutex_lock(&fs->lock);
    fs->is_up = event == CHILD_UP;
    fs->is_refused |= event == CHILD_REFUSED;
    fs->has_news |= event != CHILD_CONNECTING;
    pthread_cond_broadcast(&fs->changed);
    pthread_mutex_unlock(&fs->lock);
}

static int
make_volume_graph(struct glfs *fs)
{
    char error[1024] = "";
    size_t bytes;
    int err;
    char *text = volume_first_text(fs, &bytes, &err);
    struct volfile *v = text ? volume_parse_text(fs, text, bytes) : NULL;

    if (!v) {
        free(text);
        return err ? err : -EINVAL;
    }
    volume_text_used(fs, text, bytes);
    fs->digest = volfile_digest(v);
    struct graph *g = graph_new(client_type_find, v, fs->volume, error, sizeof error);
    if (!g) {
        log_event(LOG_ERROR, NULL, "gfapi-graph", "the volfile of volume %s cannot be used: %s", fs->volume,
                  error);
        return -EINVAL;
    }
    client_volume_log_left_out(g, fs->volume);
    inode_table_set_limit(g->inodes, API_INODES_KEPT);
    if (fs->log_level >= 0)
        log_set_group_level(&g->log, true, (enum log_level)fs->log_level);
    g->watch = api_volume_event;
    g->maker = fs;
    pthread_mutex_lock(&fs->lock);
    fs->graph = g;
    if (fs->text)
        start_following(fs);
    pthread_mutex_unlock(&fs->lock);
    return 0;
}

/* Returns 0 or -errno. */
static int
await_volume_news(struct glfs *fs)
{
    struct reason why = {""};

    pthread_mutex_lock(&fs->lock);
    while (!fs->has_news)
        pthread_cond_wait(&fs->changed, &fs->lock);
    int err = fs->is_up ? 0 : fs->is_refused ? -EACCES : -ENOTCONN;
    pthread_mutex_unlock(&fs->lock);
    if (err == -EACCES)
        graph_refusal(fs->graph, &why);
    if (err)
        log_event(LOG_ERROR, NULL, "gfapi-no-bricks", "volume %s: %s %s", fs->volume,
                  err == -EACCES ? "a brick refuses this client:" : "its bricks cannot be reached", why.text);
    return err;
}

/* Takes the connected parts down. In a thread of the library. */
static int
volume_down(void *arg)
{
    struct glfs *fs = arg;

    pthread_mutex_lock(&fs->lock);
    struct spec *spec = fs->spec;
    struct graph *g = fs->graph;

    fs->is_closing = true;
    fs->spec = NULL;
    pthread_mutex_unlock(&fs->lock);
    spec_free(spec);
    pthread_mutex_lock(&fs->lock);
    while (fs->is_following)
        pthread_cond_wait(&fs->changed, &fs->lock);
    fs->graph = NULL; /* no new pins */
    pthread_mutex_unlock(&fs->lock);
    if (g) {
        graph_drain(g);
        unsigned left = api_files_abandon(fs);

        if (left)
            log_event(LOG_INFO, NULL, "gfapi-files-left", "volume %s is closed with %u open files",
                      fs->volume, left);
        graph_free(g);
    }
    volume_text_used(fs, NULL, 0);
    free(fs->text);
    fs->text = NULL;
    fs->failure = 0;
    fs->has_news = fs->is_refused = fs->is_up = fs->is_closing = false;
    return 0;
}

static int
volume_bring_up(void *arg)
{
    struct glfs *fs = arg;
    int err = make_volume_graph(fs);

    if (!err)
        err = graph_start(fs->graph);
    if (!err)
        err = await_volume_news(fs);
    if (err)
        volume_down(fs);
    return err;
}

static int
open_volume_log(const struct glfs *fs)
{
    char path[2048];

    if (fs->log_level >= 0)
        log_set_level((enum log_level)fs->log_level);
    if (fs->log_path)
        return engine_log_to(strcmp(fs->log_path, "/dev/stderr") == 0 ? "-" : fs->log_path);
    snprintf(path, sizeof path, API_LOG_DIR "/%s.log", fs->volume);
    for (char *at = path + sizeof API_LOG_DIR; *at; at++)
        *at = *at == '/' ? '-' : *at;
    return engine_log_to(path) ? engine_log_to("/dev/null") : 0;
}

static int64_t
look_at_root_go(struct request *r)
{
    struct inode *root = inode_root(r->graph->inodes);
    struct iatt a;
    int err = object_look(r, root, &a);

    inode_unref(root);
    return err;
}

GFAPI int
glfs_init(struct glfs *fs)
{
    struct request r;

    if (!is_before_init(fs))
        return -1;
    if (!fs->server_count && !fs->volfile)
        return volume_fail(EINVAL);
    int err = open_volume_log(fs);
    if (!err)
        err = engine_start();
    if (!err)
        err = engine_run(volume_bring_up, fs);
    if (err)
        return volume_fail(-err);
    fs->dev = hash_bytes(fs->volume, strlen(fs->volume));
    if (request_run(&r, fs, look_at_root_go) == 0)
        return 0;
    err = errno;
    engine_run(volume_down, fs);
    return volume_fail(err);
}

GFAPI int
glfs_fini(struct glfs *fs)
{
    if (!fs)
        return volume_fail(EINVAL);
    int err = fs->graph && engine_is_here() ? engine_run(volume_down, fs) : 0;

    if (err) /* without a thread the volume stays */
        return volume_fail(-err);
    for (unsigned i = 0; i < fs->server_count; i++)
        free(fs->servers[i]);
    for (unsigned i = 0; i < fs->option_count; i++) {
        free(fs->options[i].pattern);
        free(fs->options[i].key);
        free(fs->options[i].value);
    }
    free(fs->options);
    free(fs->volfile);
    free(fs->log_path);
    free(fs->volume);
    free(fs->cwd);
    free(fs->dump_dir);
    api_upcalls_drop(fs);
    pthread_cond_destroy(&fs->changed);
    pthread_mutex_destroy(&fs->lock);
    free(fs);
    return 0;
}

struct graph *
volume_pin(struct glfs *fs)
{
    struct graph *g = NULL;

    if (fs && engine_is_here()) {
        pthread_mutex_lock(&fs->lock);
        g = fs->graph && graph_pin(fs->graph) ? fs->graph : NULL;
        pthread_mutex_unlock(&fs->lock);
    }
    if (!g)
        errno = fs ? ENOTCONN : EINVAL;
    return g;
}

/* ---- the volume's id ------------------------------------------------------------------------- */

GFAPI int
glfs_get_volumeid(struct glfs *fs, char *id, size_t size)
{
    struct gfid of_brick;

    if (!id || !size)
        return sizeof of_brick;
    if (size < sizeof of_brick)
        return volume_fail(ERANGE);
    struct graph *g = volume_pin(fs);
    if (!g)
        return -1;
    bool is_known = client_volume_id(g, &of_brick);

    graph_unpin(g);
    if (!is_known)
        return volume_fail(ENODATA);
    memcpy(id, &of_brick, sizeof of_brick);
    return sizeof of_brick;
}
