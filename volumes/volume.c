/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/volume.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volumes/volume-task.h"

enum { FORMAT_WITHOUT_TASK = 2, FORMAT_OF_TASK = 3 };

/* ---- the value ------------------------------------------------------------------------------- */

static void
random_text(char text[GFID_TEXT_SIZE])
{
    struct gfid g;

    gfid_random(&g);
    gfid_text(&g, text);
}

struct volume *
volume_new(const char *name, unsigned replica, bool has_arbiter)
{
    struct volume *v = calloc(1, sizeof *v);

    if (!v || !(v->name = strdup(name))) {
        free(v);
        return NULL;
    }
    gfid_random(&v->id);
    random_text(v->username);
    random_text(v->password);
    v->replica = replica;
    v->has_arbiter = has_arbiter;
    return v;
}

static void
free_bricks(struct volume_brick *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        free(list[i].host);
        free(list[i].path);
    }
    free(list);
}

void
volume_free(struct volume *v)
{
    if (!v)
        return;
    free_bricks(v->bricks, v->brick_count);
    free_bricks(v->coming, v->coming_count);
    for (unsigned i = 0; i < v->option_count; i++) {
        free(v->options[i].key);
        free(v->options[i].value);
    }
    free(v->options);
    json_decref(v->task);
    free(v->name);
    free(v);
}

/* Inserts a copy of `b` before the brick at `place`. */
static int
insert_brick(struct volume_brick **list, unsigned *count, unsigned place, const struct volume_brick *b)
{
    struct volume_brick *more = reallocarray(*list, *count + 1, sizeof *more), fresh = *b;

    if (!more)
        return -ENOMEM;
    *list = more;
    fresh.host = strdup(b->host);
    fresh.path = strdup(b->path);
    if (!fresh.host || !fresh.path) {
        free(fresh.host);
        free(fresh.path);
        return -ENOMEM;
    }
    memmove(more + place + 1, more + place, (*count - place) * sizeof *more);
    more[place] = fresh;
    (*count)++;
    return 0;
}

int
volume_insert_brick(struct volume *v, unsigned place, const struct volume_brick *b)
{
    if (v->next_id <= b->id)
        v->next_id = b->id + 1;
    return insert_brick(&v->bricks, &v->brick_count, place, b);
}

int
volume_add_coming(struct volume *v, const struct volume_brick *b)
{
    return insert_brick(&v->coming, &v->coming_count, v->coming_count, b);
}

int
volume_add_brick(struct volume *v, const char *host, const char *path, bool made)
{
    const struct volume_brick b = {(char *)host, (char *)path, made, v->next_id};

    return volume_insert_brick(v, v->brick_count, &b);
}

void
volume_drop_coming(struct volume *v)
{
    free_bricks(v->coming, v->coming_count);
    v->coming = NULL;
    v->coming_count = 0;
}

void
volume_remove_brick(struct volume *v, unsigned place)
{
    struct volume_brick *b = &v->bricks[place];

    free(b->host);
    free(b->path);
    v->brick_count--;
    memmove(b, b + 1, (v->brick_count - place) * sizeof *b);
}

int
volume_find_brick(const struct volume *v, const char *path)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        if (strcmp(v->bricks[i].path, path) == 0)
            return (int)i;
    }
    return -1;
}

/* Returns the index of the key, or the index at which it belongs. */
static unsigned
option_place(const struct volume *v, const char *key)
{
    unsigned i = 0;

    while (i < v->option_count && strcmp(v->options[i].key, key) < 0)
        i++;
    return i;
}

static bool
is_at(const struct volume *v, unsigned place, const char *key)
{
    return place < v->option_count && strcmp(v->options[place].key, key) == 0;
}

const char *
volume_option_of(const struct volume *v, const char *key)
{
    unsigned i = option_place(v, key);

    return is_at(v, i, key) ? v->options[i].value : NULL;
}

static int
insert_option(struct volume *v, unsigned place, const char *key, char *value)
{
    struct volume_option *more = reallocarray(v->options, v->option_count + 1, sizeof *more);

    if (!more)
        return -ENOMEM;
    v->options = more;
    char *copy = strdup(key);
    if (!copy)
        return -ENOMEM;
    memmove(more + place + 1, more + place, (v->option_count - place) * sizeof *more);
    more[place] = (struct volume_option){copy, value};
    v->option_count++;
    return 0;
}

int
volume_set_option(struct volume *v, const char *key, const char *value)
{
    unsigned i = option_place(v, key);
    char *copy = strdup(value);

    if (!copy)
        return -ENOMEM;
    if (is_at(v, i, key)) {
        free(v->options[i].value);
        v->options[i].value = copy;
        return 0;
    }
    int err = insert_option(v, i, key, copy);
    if (err)
        free(copy);
    return err;
}

bool
volume_unset_option(struct volume *v, const char *key)
{
    unsigned i = option_place(v, key);

    if (!is_at(v, i, key))
        return false;
    free(v->options[i].key);
    free(v->options[i].value);
    v->option_count--;
    memmove(v->options + i, v->options + i + 1, (v->option_count - i) * sizeof *v->options);
    return true;
}

static int
copy_lists(struct volume *to, const struct volume *from)
{
    int err = 0;

    for (unsigned i = 0; i < from->brick_count && !err; i++)
        err = volume_insert_brick(to, i, &from->bricks[i]);
    for (unsigned i = 0; i < from->coming_count && !err; i++)
        err = volume_add_coming(to, &from->coming[i]);
    to->next_id = from->next_id;
    for (unsigned i = 0; i < from->option_count && !err; i++)
        err = volume_set_option(to, from->options[i].key, from->options[i].value);
    return err;
}

struct volume *
volume_copy(const struct volume *v)
{
    struct volume *copy = volume_new(v->name, v->replica, v->has_arbiter);

    if (!copy)
        return NULL;
    copy->id = v->id;
    copy->redundancy = v->redundancy;
    copy->status = v->status;
    memcpy(copy->username, v->username, sizeof copy->username);
    memcpy(copy->password, v->password, sizeof copy->password);
    copy->task = json_deep_copy(v->task);
    if (copy_lists(copy, v) || (v->task && !copy->task)) {
        volume_free(copy);
        return NULL;
    }
    return copy;
}

static const char *const status_words[] = {[VOLUME_CREATING] = "creating",
                                           [VOLUME_CREATED] = "created",
                                           [VOLUME_STARTED] = "started",
                                           [VOLUME_STOPPED] = "stopped"};

const char *
volume_status_text(enum volume_status status)
{
    static const char *const texts[] = {[VOLUME_CREATING] = "Creating",
                                        [VOLUME_CREATED] = "Created",
                                        [VOLUME_STARTED] = "Started",
                                        [VOLUME_STOPPED] = "Stopped"};

    return texts[status];
}

const char *
volume_type_text(const struct volume *v)
{
    if (v->replica == 1)
        return "Distribute";
    if (v->redundancy)
        return v->brick_count > v->replica ? "Distributed-Disperse" : "Disperse";
    return v->brick_count > v->replica ? "Distributed-Replicate" : "Replicate";
}

int
volume_refuse_dispersed(const struct volume *v, const char *what, struct problem *why)
{
    if (!v->redundancy)
        return 0;
    problem_set(why, -EOPNOTSUPP, "volume %s is dispersed, and %s is not built for dispersed volumes",
                v->name, what);
    return why->err;
}

enum { DISPERSED_MAX = 31, DISPERSED_DATA_MAX = 16 }; /* bricks of a set */

static int
check_dispersed(const struct volume *v, struct problem *why)
{
    bool is_good = v->replica >= 3 && v->replica <= DISPERSED_MAX && v->replica >= 2 * v->redundancy + 1 &&
                   v->replica - v->redundancy <= DISPERSED_DATA_MAX && !v->has_arbiter;

    if (is_good)
        return 0;
    problem_set(why, -EINVAL, "disperse %u redundancy %u", v->replica, v->redundancy);
    problem_expected(why,
                     "3 to %d bricks, a redundancy of less than half of them, and at most %d bricks besides",
                     DISPERSED_MAX, DISPERSED_DATA_MAX);
    return why->err;
}

/* ---- checks ---------------------------------------------------------------------------------- */

int
volume_check_name(const char *name, struct problem *why)
{
    size_t len = strlen(name);
    bool is_good = len > 0 && len <= VOLUME_NAME_MAX && name[0] != '-' && strcmp(name, "all") != 0;

    for (const char *c = name; *c && is_good; c++)
        is_good = (*c & 0x80) == 0 && (isalnum((unsigned char)*c) || *c == '-' || *c == '_');
    if (is_good)
        return 0;
    problem_set(why, -EINVAL, "'%.200s' cannot be the name of a volume", name);
    problem_expected(why,
                     "1 to %d letters, digits, '-' and '_', not beginning with '-', and not the word all",
                     VOLUME_NAME_MAX);
    return why->err;
}

bool
volume_name_is_keyword(const char *name)
{
    static const char *const words[] = {"volume", "type", "option", "subvolumes", "end-volume"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(name, words[i]) == 0)
            return true;
    }
    return false;
}

int
volume_check_new_name(const char *name, struct problem *why)
{
    if (volume_check_name(name, why))
        return why->err;
    if (!volume_name_is_keyword(name))
        return 0;
    problem_set(why, -EINVAL, "'%s' cannot be the name of a volume: it is a word of the volfile's grammar",
                name);
    problem_expected(why, "a name other than volume, type, option, subvolumes and end-volume");
    return why->err;
}

int
volume_check_shape(const struct volume *v, struct problem *why)
{
    if (v->brick_count == 0 || v->brick_count > VOLUME_BRICKS_MAX) {
        problem_set(why, -EINVAL, "volume %s with %u bricks", v->name, v->brick_count);
        problem_expected(why, "1 to %d folders that become its bricks", VOLUME_BRICKS_MAX);
        problem_type(why, "kiln volume create %s /srv/%s-1", v->name, v->name);
    } else if (v->redundancy && check_dispersed(v, why)) {
        return why->err;
    } else if (v->has_arbiter && v->replica != 3) {
        problem_set(why, -EINVAL, "an arbiter with replica %u", v->replica);
        problem_expected(why, "replica 3 arbiter 1: two bricks with the data, and one without");
    } else if (v->replica < 1 || (v->replica > 16 && !v->redundancy)) {
        problem_set(why, -EINVAL, "replica %u", v->replica);
        problem_expected(why, "replica 2 to 16, or no replica at all");
    } else if (v->brick_count % v->replica != 0) {
        problem_set(why, -EINVAL, "%u brick%s with %s %u", v->brick_count, v->brick_count == 1 ? "" : "s",
                    v->redundancy ? "disperse" : "replica", v->replica);
        problem_expected(why, "a multiple of %u bricks", v->replica);
    } else {
        return 0;
    }
    return why->err;
}

int
volume_check_host(const char *host, struct problem *why)
{
    bool is_good = strlen(host) <= 255;

    for (const char *c = host; *c && is_good; c++)
        is_good = (*c & 0x80) == 0 && (isalnum((unsigned char)*c) || strchr("-_.:%", *c));
    if (is_good)
        return 0;
    problem_set(why, -EINVAL, "'%.255s' is not the name or address of a host", host);
    return why->err;
}

/* A client's portmap request ends at a blank, and operators cannot type control characters. */
static bool
is_path_byte(unsigned char c)
{
    return c > ' ' && c != 0x7f && c != '"' && c != '\\' && c != '`';
}

static bool
is_component_good(const char *part, size_t len)
{
    return len > 0 && len <= 255 && !(len == 1 && part[0] == '.') &&
           !(len == 2 && memcmp(part, "..", 2) == 0);
}

int
volume_check_path(const char *path, char *out, struct problem *why)
{
    size_t len = strlen(path);
    const char *flaw = NULL;

    while (len > 1 && path[len - 1] == '/')
        len--;
    if (path[0] != '/')
        flaw = "is not absolute";
    else if (len < 2)
        flaw = "is the root of the machine";
    else if (len > VOLUME_BRICK_PATH_MAX)
        flaw = "is too long";
    for (size_t i = 0; i < len && !flaw; i++) {
        if (!is_path_byte((unsigned char)path[i]))
            flaw = "has a blank, a control character, or one of \" \\ `";
    }
    for (size_t i = 0, n; i < len && !flaw; i += n + 1) {
        n = strcspn(path + i + 1, "/");
        if (i + 1 + n > len)
            n = len - i - 1;
        if (!is_component_good(path + i + 1, n))
            flaw = "has an empty, a '.' or a '..' component, or one of more than 255 bytes";
    }
    if (!flaw) {
        memcpy(out, path, len);
        out[len] = '\0';
        return 0;
    }
    problem_set(why, -EINVAL, "brick path '%.300s' %s", path, flaw);
    problem_expected(why, "an absolute path of at most %d bytes, such as /srv/brick1", VOLUME_BRICK_PATH_MAX);
    return why->err;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *
bricks_to_json(const struct volume_brick *bricks, unsigned count)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < count && list; i++) {
        const struct volume_brick *b = &bricks[i];
        json_t *one = json_pack("{ss ss sb si}", "host", b->host, "path", b->path, "made", (int)b->made, "id",
                                (int)b->id);

        if (json_array_append_new(list, one) < 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *
options_to_json(const struct volume *v)
{
    json_t *object = json_object();

    for (unsigned i = 0; i < v->option_count && object; i++) {
        if (json_object_set_new(object, v->options[i].key, json_string(v->options[i].value)) < 0) {
            json_decref(object);
            object = NULL;
        }
    }
    return object;
}

json_t *
volume_to_json(const struct volume *v)
{
    /* json_pack() consumes the arguments of `o`, and fails if one of them is NULL */
    json_t *redundancy = v->redundancy ? json_integer((json_int_t)v->redundancy) : NULL;

    return json_pack("{si ss ss ss si si ss ss so si so so sO* so*}", "format",
                     v->redundancy ? VOLUME_FORMAT
                     : v->task     ? FORMAT_OF_TASK
                                   : FORMAT_WITHOUT_TASK, "name", v->name, "id", GFID(&v->id),
                     "status", status_words[v->status], "replica", (int)v->replica, "arbiter",
                     (int)v->has_arbiter, "username", v->username, "password", v->password, "bricks",
                     bricks_to_json(v->bricks, v->brick_count), "next_brick", (int)v->next_id, "coming",
                     bricks_to_json(v->coming, v->coming_count), "options", options_to_json(v), "task",
                     v->task, "redundancy", redundancy);
}

static const char *
json_member_text(const json_t *json, const char *key, struct problem *why)
{
    const json_t *value = json_object_get(json, key);

    if (json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value))
        return json_string_value(value);
    problem_set(why, -EINVAL, "\"%s\" is missing or not a text", key);
    return NULL;
}

static int
json_member_number(const json_t *json, const char *key, json_int_t max, unsigned *out, struct problem *why)
{
    const json_t *value = json_object_get(json, key);
    json_int_t n = json_integer_value(value);

    if (!json_is_integer(value) || n < 0 || n > max)
        return problem_set(why, -EINVAL, "\"%s\" is missing or not a number from 0 to %lld", key,
                           (long long)max);
    *out = (unsigned)n;
    return 0;
}

static int
append_brick(struct volume *v, const struct volume_brick *b)
{
    return volume_insert_brick(v, v->brick_count, b);
}

/* In format 1 the number of a brick is its place in the list. */
static int
append_numbered(struct volume *v, const struct volume_brick *b)
{
    return volume_add_brick(v, b->host, b->path, b->made);
}

/* Parses a brick of a list, and adds it to the volume by `put`. */
static int
read_brick(struct volume *v, const json_t *one, int (*put)(struct volume *v, const struct volume_brick *b),
           struct problem *why)
{
    char normal[VOLUME_BRICK_PATH_MAX + 1];
    const char *host = json_member_text(one, "host", why),
               *path = host ? json_member_text(one, "path", why) : NULL;
    struct volume_brick b = {(char *)host, normal, json_is_true(json_object_get(one, "made")), 0};

    if (!path || volume_check_host(host, why) || volume_check_path(path, normal, why) ||
        (put != append_numbered && json_member_number(one, "id", VOLUME_BRICK_ID_MAX, &b.id, why)))
        return why->err;
    for (unsigned i = 0; i < v->brick_count && put == append_brick; i++) {
        if (v->bricks[i].id == b.id)
            return problem_set(why, -EINVAL, "two bricks have the id %u", b.id);
    }
    return put(v, &b) ? problem_no_memory(why) : 0;
}

static int
read_bricks(struct volume *v, const json_t *json, const char *key,
            int (*put)(struct volume *v, const struct volume_brick *b), struct problem *why)
{
    const json_t *list = json_object_get(json, key), *one;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > VOLUME_BRICKS_MAX)
        return problem_set(why, -EINVAL, "\"%s\" is missing or not a list of at most %d", key,
                           VOLUME_BRICKS_MAX);
    json_array_foreach(list, i, one)
    {
        if (read_brick(v, one, put, why))
            return why->err;
    }
    return 0;
}

/* Checks the form only, because options of another version may be unknown here. In a volfile a line break or
 * a tab ends a value, and further options and layers could follow. */
static int
check_option_form(const char *key, const char *value, struct problem *why)
{
    bool is_good = *key && strlen(key) <= VOLUME_KEY_MAX && strlen(value) <= VOLUME_VALUE_MAX;

    for (const char *c = key; *c && is_good; c++)
        is_good = *c > ' ' && *c <= '~';
    for (const char *c = value; *c && is_good; c++)
        is_good = (unsigned char)*c >= ' ' && *c != 0x7f;
    if (is_good)
        return 0;
    return problem_set(why, -EINVAL, "the option '%.200s' or its value is too long or has control characters",
                       key);
}

static int
read_options(struct volume *v, json_t *object, struct problem *why)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object) || json_object_size(object) > VOLUME_OPTIONS_MAX)
        return problem_set(why, -EINVAL, "\"options\" is missing or not an object of at most %d",
                           VOLUME_OPTIONS_MAX);
    json_object_foreach(object, key, value)
    {
        const char *text = json_member_text(object, key, why);

        if (!text || check_option_form(key, text, why))
            return why->err;
        if (volume_set_option(v, key, text))
            return problem_no_memory(why);
    }
    return 0;
}

static int
read_status(struct volume *v, const json_t *json, struct problem *why)
{
    const char *word = json_member_text(json, "status", why);

    for (unsigned i = 0; word && i < sizeof status_words / sizeof status_words[0]; i++) {
        if (strcmp(word, status_words[i]) == 0) {
            v->status = (enum volume_status)i;
            return 0;
        }
    }
    return word ? problem_set(why, -EINVAL, "\"status\" is '%.40s'", word) : why->err;
}

static int
read_secret(char out[GFID_TEXT_SIZE], const json_t *json, const char *key, struct problem *why)
{
    const char *text = json_member_text(json, key, why);
    struct gfid g;

    if (!text)
        return why->err;
    if (gfid_parse(text, strlen(text), &g))
        return problem_set(why, -EINVAL, "\"%s\" is not a uuid", key);
    gfid_text(&g, out);
    return 0;
}

static int
read_fields(struct volume *v, const json_t *json, bool is_old, struct problem *why)
{
    char id[GFID_TEXT_SIZE];
    unsigned arbiter, next_id = 0;

    if (read_secret(id, json, "id", why) || read_status(v, json, why) ||
        json_member_number(json, "replica", DISPERSED_MAX, &v->replica, why) ||
        (json_object_get(json, "redundancy") &&
         json_member_number(json, "redundancy", DISPERSED_MAX, &v->redundancy, why)) ||
        json_member_number(json, "arbiter", 1, &arbiter, why) ||
        read_secret(v->username, json, "username", why) || read_secret(v->password, json, "password", why) ||
        read_bricks(v, json, "bricks", is_old ? append_numbered : append_brick, why) ||
        (!is_old && (json_member_number(json, "next_brick", VOLUME_BRICK_ID_MAX, &next_id, why) ||
                     read_bricks(v, json, "coming", volume_add_coming, why))) ||
        read_options(v, json_object_get(json, "options"), why))
        return why->err;
    const json_t *task = json_object_get(json, "task");
    if (task && volume_task_check(task, why))
        return why->err;
    v->task = json_deep_copy(task);
    (void)gfid_parse(id, strlen(id), &v->id); /* cannot fail: read_secret() has formatted it */
    v->has_arbiter = arbiter != 0;
    if (next_id > v->next_id)
        v->next_id = next_id;
    return volume_check_shape(v, why);
}

struct volume *
volume_from_json(const json_t *json, struct problem *why)
{
    unsigned format;

    if (!json_is_object(json)) {
        problem_set(why, -EINVAL, "it is not a JSON object");
        return NULL;
    }
    if (json_member_number(json, "format", 1 << 30, &format, why))
        return NULL;
    if (format < 1 || format > VOLUME_FORMAT) {
        problem_set(why, -EPROTO, "its format is %u", format);
        problem_expected(why, "format 1 to %d: a newer kilnd has written it", VOLUME_FORMAT);
        return NULL;
    }
    const char *name = json_member_text(json, "name", why);
    if (!name || volume_check_name(name, why))
        return NULL;
    struct volume *v = volume_new(name, 1, false);
    if (!v) {
        problem_no_memory(why);
        return NULL;
    }
    if (read_fields(v, json, format == 1, why)) {
        volume_free(v);
        return NULL;
    }
    return v;
}
