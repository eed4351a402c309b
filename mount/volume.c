/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A client's volfile ends with the volume; what stands above it here, mount/fuse, is added to its text. Its
 * options come as overrides, so that no path needs quoting. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/graph.h"
#include "mount/kiln-mount.h"

#define MOUNT_NAME "kiln-mount"

/* The whole file, with room for more behind it. NULL: *error says why. */
static char *
read_text(const char *path, size_t room, size_t *len, char *error, size_t error_size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &st) == 0) {
        errno = EFBIG;
        text = st.st_size <= VOLFILE_BYTES_MAX ? malloc((size_t)st.st_size + room + 1) : NULL;
    }
    if (text)
        n = read(fd, text, (size_t)st.st_size);
    if (n < 0) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (fd >= 0)
        close(fd);
    *len = n < 0 ? 0 : (size_t)n;
    return text;
}

/* The volfile with one more layer. */
static struct volfile *
read_with_mount(const char *path, char *error, size_t error_size)
{
    size_t len, room = 4096;
    char *text = read_text(path, room, &len, error, error_size);
    struct volfile *v = text ? volfile_parse(path, text, len, error, error_size) : NULL;

    if (!v) {
        free(text);
        return NULL;
    }
    int more = snprintf(text + len, room,
                        "\nvolume " MOUNT_NAME "\n type mount/fuse\n subvolumes %s\nend-volume\n",
                        v->top->name);
    volfile_free(v);
    v = NULL;
    if (more < (int)room)
        v = volfile_parse(path, text, len + (size_t)more, error, error_size);
    else
        snprintf(error, error_size, "%s: the volume's name is too long", path);
    free(text);
    return v;
}

static int
set_option(struct volfile *v, const char *key, const char *value)
{
    return value ? volfile_override(v, MOUNT_NAME, key, value) : 0;
}

static int
set_options(struct volfile *v, const struct mount_options *o, const char *mountpoint)
{
    const struct {
        const char *key, *value;
    } options[] = {
        {"mountpoint", mountpoint},
        {"source", o->source ? o->source : o->volfile},
        {"attribute-timeout", o->attr_timeout},
        {"entry-timeout", o->entry_timeout},
        {"negative-timeout", o->negative_timeout},
        {"direct-io-mode", o->direct_io},
        {"acl", o->acl ? "on" : NULL},
        {"read-only", o->is_read_only ? "on" : NULL},
    };
    int err = 0;

    for (size_t i = 0; i < sizeof options / sizeof options[0] && !err; i++)
        err = set_option(v, options[i].key, options[i].value);
    return err;
}

/* PATTERN.KEY=VALUE, checked already. The first of several is added last, so that it wins. */
static int
set_xlator_options(struct volfile *v, const struct mount_options *o)
{
    int err = 0;

    for (unsigned i = o->xlator_option_count; i-- > 0 && !err;) {
        const char *text = o->xlator_options[i], *dot = strchr(text, '.'), *equals = strchr(dot, '=');
        char *pattern = strndup(text, (size_t)(dot - text));
        char *key = strndup(dot + 1, (size_t)(equals - dot - 1));

        err = pattern && key ? volfile_override(v, pattern, key, equals + 1) : -ENOMEM;
        free(pattern);
        free(key);
    }
    return err;
}

struct graph *
volume_new(const struct mount_options *o, const char *mountpoint, char *error, size_t error_size)
{
    struct volfile *v = read_with_mount(o->volfile, error, error_size);

    if (!v)
        return NULL;
    if (set_options(v, o, mountpoint) || set_xlator_options(v, o)) {
        snprintf(error, error_size, "no memory");
        volfile_free(v);
        return NULL;
    }
    return graph_new(v, v->top->subvolumes[0]->name, error, error_size);
}
