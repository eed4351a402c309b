/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs libFuzzer on the input of a kilnd with --state: the files of its state folder, and keys and values of
 * options. The first byte selects the input. An accepted volume must make readable volfiles, and must be the
 * same when read back from its text: so no name, path or value leaves its place in a volfile.
 *
 * Every run is repeated with an allocation or a system call that fails. After any failure a state folder that
 * could be read before can still be read.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/volfile.h"
#include "volumes/state-dir.h"
#include "volumes/volfile-text.h"
#include "volumes/volume-options.h"
#include "tests/wire/fuzz-calls.h"
#include "tests/wire/fuzz-memory.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_failing; /* a call fails in this run, so results may be NULL */

/* Takes over the text. */
static void
must_parse(char *text, size_t sections)
{
    char error[512];

    if (is_failing || !text) {
        if (!is_failing)
            abort();
        free(text);
        return;
    }
    struct volfile *v = volfile_parse("fuzz", text, strlen(text), error, sizeof error);

    if (!v || (sections && v->section_count != sections))
        abort();
    volfile_free(v);
    free(text);
}

static bool
is_all_allowed(const struct volume *v)
{
    struct problem why;

    for (unsigned i = 0; i < v->option_count; i++) {
        if (volume_option_check(v, v->options[i].key, v->options[i].value, &why))
            return false;
    }
    return true;
}

static void
use(const struct volume *v)
{
    const struct volfile_place here = {"192.0.2.1", false};
    unsigned layers = 18 + volume_option_bool(v, "features.acl");

    if (!is_all_allowed(v)) /* no `kiln volume set` accepts that: the file was written by hand */
        return;
    must_parse(volfile_text_brick(v, 0, 1), layers);
    must_parse(volfile_text_client(v, &here), 0);
    for (unsigned set = 0; v->replica > 1 && set < v->brick_count / v->replica; set++)
        must_parse(volfile_text_heal(v, 49152, set), 0);
    if (!*volume_type_text(v) || !*volume_status_text(v->status))
        abort();
}

/* The text of a volume is read as the same volume. */
static void
comes_back(const struct volume *v)
{
    struct problem why;
    json_t *json = volume_to_json(v), *back = NULL;
    struct volume *again = json ? volume_from_json(json, &why) : NULL;

    if (again)
        back = volume_to_json(again);
    if (!is_failing && (!back || !json_equal(json, back)))
        abort();
    json_decref(json);
    json_decref(back);
    volume_free(again);
}

/* Changes a copy to a volume without bricks and options. The original does not change. */
static void
take_apart(const struct volume *v)
{
    struct volume *copy = volume_copy(v);

    if (!copy) {
        if (!is_failing)
            abort();
        return;
    }
    comes_back(copy);
    volume_drop_coming(copy);
    while (copy->option_count) {
        char *key = __real_strdup(copy->options[copy->option_count / 2].key);

        if (!volume_unset_option(copy, key) || volume_unset_option(copy, key) || volume_option_of(copy, key))
            abort();
        free(key);
    }
    (void)volume_options_of_new(copy);
    (void)volume_options_of_new(copy); /* in their place */
    while (copy->brick_count) {
        int first = volume_find_brick(copy, copy->bricks[copy->brick_count - 1].path);

        if (first < 0 || (unsigned)first >= copy->brick_count)
            abort();
        volume_remove_brick(copy, (unsigned)first);
    }
    if (volume_find_brick(copy, "/b") != -1)
        abort();
    volume_free(copy);
    comes_back(v);
}

static void
run_state(const char *text, size_t size)
{
    struct problem why;
    struct volume *v = state_dir_parse(text, size, &why);

    if (!v)
        return;
    use(v);
    take_apart(v);
    volume_free(v);
}

/* ---- a folder -------------------------------------------------------------------------------- */

static char folder[64];

static void
empty(int dir)
{
    DIR *d = fdopendir(dir);
    const struct dirent *e;

    if (!d)
        abort();
    while ((e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || unlinkat(dir, e->d_name, 0) == 0)
            continue;
        int below = openat(dir, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (below < 0)
            abort();
        empty(below);
        if (unlinkat(dir, e->d_name, AT_REMOVEDIR) < 0)
            abort();
    }
    closedir(d);
}

static int
open_folder(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        abort();
    return fd;
}

static void
remove_folder(void)
{
    empty(open_folder("."));
    rmdir(folder);
}

static void
put(int dir, const char *name, const char *text, size_t size)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd >= 0 && write(fd, text, size) != (ssize_t)size)
        abort();
    if (fd >= 0)
        close(fd);
}

/* Makes an object. Its name ends at a NUL, its contents end at a 0x01. Returns the bytes used. */
static size_t
put_object(const char *text, size_t size)
{
    char name[NAME_MAX + 1];
    size_t len = size > 1 ? strnlen(text + 1, size - 1) : 0, at = len + 2;

    if (len == 0 || len > NAME_MAX || at >= size)
        return size;
    memcpy(name, text + 1, len + 1);
    const char *end = memchr(text + at, 1, size - at);
    size_t holds = end ? (size_t)(end - text) - at : size - at;
    int dir = open_folder(text[0] & 1 ? "." : "volumes");

    if (!strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
        switch (text[0] >> 1 & 7) {
        case 0:
            (void)mkdirat(dir, name, 0700);
            break;
        case 1: {
            int err = symlinkat("/etc/passwd", dir, name); /* the name may be there */
            (void)err;
            break;
        }
        case 2:
            (void)mkfifoat(dir, name, 0600);
            break;
        default:
            put(dir, name, text + at, holds);
        }
    }
    close(dir);
    return at + holds + (end != NULL);
}

/* The first byte selects the contents of the folder beside the objects that follow. */
static void
make_folder(const char *text, size_t size)
{
    int top = open_folder(".");

    empty(dup(top));
    if (fchmod(top, text[0] & 8 ? 0770 : 0700) < 0 || mkdirat(top, "volumes", 0700) < 0)
        abort();
    if (text[0] & 1)
        put(top, "kiln-state", "{\"format\": 1}\n", 14);
    for (size_t at = 1; at < size;)
        at += put_object(text + at, size - at);
    if (text[0] & 2)
        (void)unlinkat(top, "volumes", AT_REMOVEDIR); /* if nothing is in it */
    if (text[0] & 4)
        put(top, "lock", "4711", 4);
    if (text[0] & 16) {
        int fd = openat(top, "kiln-state", O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);

        if (fd >= 0 && ftruncate(fd, (16 << 20) + 1) < 0) /* more than a state file may be */
            errno = 0;                                    /* it is no file */
        if (fd >= 0)
            close(fd);
    }
    close(top);
}

struct seen {
    struct state_dir *s;
    struct volume *volumes[8];
    unsigned count;
};

static int
see(struct volume *v, void *arg, struct problem *why)
{
    struct seen *seen = arg;

    if (seen->count == 8) {
        volume_free(v);
        return problem_set(why, -E2BIG, "more than this test keeps");
    }
    seen->volumes[seen->count++] = v;
    return 0;
}

static void
forget(struct seen *seen)
{
    while (seen->count)
        volume_free(seen->volumes[--seen->count]);
}

/* Loads the whole folder. Returns the number of volumes, or -1. */
static int
load(struct state_dir *s, struct seen *seen)
{
    struct problem why;

    int err = state_dir_load(s, see, seen, &why);
    if (err && (!why.err || !*why.wrong))
        abort();
    return err ? -1 : (int)seen->count;
}

/* Writes, reads and removes the known volumes. -1: the folder was refused. */
static int
work_in_folder(void)
{
    struct problem why = {0};
    struct seen first = {0}, second = {0};
    struct state_dir *s = state_dir_open(folder, &why);

    if (!s && (!why.err || !*why.wrong))
        abort();
    if (!s)
        return -1;
    if (strcmp(state_dir_path(s), folder) != 0)
        abort();
    if (!is_failing && (state_dir_open(folder, &why) || why.err != -EBUSY)) /* it is somebody's */
        abort();
    int count = load(s, &first);
    for (unsigned i = 0; i < first.count; i++) {
        bool is_there = false;

        (void)state_dir_save(s, first.volumes[i], &is_there, &why);
    }
    int again = load(s, &second);
    if (!is_failing && again != count)
        abort();
    if (first.count && state_dir_remove(s, first.volumes[0]->name, &why) == 0)
        (void)state_dir_remove(s, first.volumes[0]->name, &why); /* it is not there */
    forget(&first);
    forget(&second);
    state_dir_close(s);
    return count;
}

static void
run_folder(const char *text, size_t size)
{
    unsigned left_calls = calls_left, left_memory = allocations_left;

    calls_left = allocations_left = 0;
    make_folder(text, size);
    calls_left = left_calls, allocations_left = left_memory;
    int count = work_in_folder();
    if (!is_failing)
        return;
    calls_left = allocations_left = 0;
    is_failing = false;
    int then = work_in_folder();
    make_folder(text, size);
    int whole = work_in_folder();

    /* The number of volumes is the same as without a failure, or one less if a file was removed before the
     * failure. */
    if ((whole >= 0) != (then >= 0) || (whole >= 0 && then != whole && then != whole - 1) || count > whole)
        abort();
}

/* ---- options and paths ----------------------------------------------------------------------- */

/* "key\0value" */
static void
run_option(const char *text, size_t size)
{
    struct volume *v = volume_new("v", 2, false);
    struct problem why;
    size_t key = strlen(text);

    if (!v || volume_add_brick(v, "", "/b/1", false) || volume_add_brick(v, "", "/b/2", false)) {
        if (!is_failing)
            abort();
        volume_free(v);
        return;
    }
    const char *value = key < size ? text + key + 1 : "";
    (void)volume_key_like(text);
    if (volume_option_check(v, text, value, &why) == 0) {
        if (volume_set_option(v, text, value) && !is_failing)
            abort();
        (void)volume_option_check(v, "features.worm", "on", &why); /* not beside read-only */
        use(v);
    }
    volume_free(v);
}

static void
run_path(const char *text)
{
    char normal[VOLUME_BRICK_PATH_MAX + 1], again[VOLUME_BRICK_PATH_MAX + 1];
    struct problem why;

    (void)volume_check_name(text, &why);
    if (volume_check_path(text, normal, &why))
        return;
    if (volume_check_path(normal, again, &why) || strcmp(normal, again) != 0)
        abort();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    strcpy(folder, "/dev/shm/kiln-fuzz-XXXXXX");
    if (!mkdtemp(folder) || atexit(remove_folder))
        abort();
    json_set_alloc_funcs(malloc, free); /* so that jansson's allocations fail as well */
    return 0;
}

static void
run(const uint8_t *data, size_t size)
{
    /* A copy of the exact size with a NUL, so that ASan sees a step outside. */
    char *text = __real_malloc(size);

    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 4) {
    case 0:
        run_state(text, size - 1);
        break;
    case 1:
        run_option(text, size - 1);
        break;
    case 2:
        run_path(text);
        break;
    default:
        run_folder(text, size);
    }
    calls_left = allocations_left = 0;
    is_failing = false;
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    run(data, size);
    unsigned which = failing_allocation(data, size);

    is_failing = true;
    allocations_left = which * which; /* 1 to 256: a text has many, and the first are most alike */
    run(data, size);
    is_failing = true;
    calls_left = which * 3 + data[size - 1] % 3;
    calls_error = (const int[]){EIO, EWOULDBLOCK, ENOSPC}[size % 3];
    run(data, size);
    return 0;
}
