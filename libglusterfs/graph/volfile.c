/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The grammar is that of management 2.4: words and quoted strings; line ends have no meaning. Back-quotes
 * (a shell command's output) are refused because a volfile is data. */
#include "graph/volfile.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY /* allows the hash state on our stack */
#include <xxhash.h>

struct parser {
    const char *path;
    char *at, *end;
    unsigned line;
    char *error;
    size_t error_size;
    bool has_failed;
    /* The current word. */
    char *word;
    bool is_quoted;
    unsigned word_line;
    struct volfile *v;
};

static void __attribute__((format(printf, 2, 3)))
parse_fail(struct parser *p, const char *fmt, ...)
{
    va_list ap;

    if (p->has_failed)
        return;
    p->has_failed = true;
    int n = snprintf(p->error, p->error_size, "%s:%u: ", p->path, p->word_line ? p->word_line : p->line);
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < p->error_size)
        vsnprintf(p->error + n, p->error_size - (size_t)n, fmt, ap);
    va_end(ap);
}

static void
skip_blank(struct parser *p)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == '#') {
            while (p->at < p->end && *p->at != '\n')
                p->at++;
            if (p->at == p->end)
                return;
        }
        if (*p->at == '\n')
            p->line++;
        else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r')
            return;
    }
}

/* Unescapes a quoted string in place; its NUL replaces the closing quote or an earlier byte. */
static bool
next_quoted(struct parser *p)
{
    char *out = p->word = ++p->at;

    for (; p->at < p->end && *p->at != '"' && *p->at != '\n'; p->at++) {
        if (*p->at == '\\' && p->at + 1 < p->end)
            p->at++;
        *out++ = *p->at;
    }
    if (p->at == p->end || *p->at != '"') {
        parse_fail(p, "expected a closing '\"' before the end of the line");
        return false;
    }
    p->at++;
    *out = '\0';
    return true;
}

/* Reads the next word and terminates it in place. False at the end of the text or on an error. The text
 * has one spare byte behind its end, so that the last word can be terminated too. */
static bool
next_word(struct parser *p)
{
    skip_blank(p);
    p->word_line = p->line;
    p->is_quoted = false;
    if (p->at == p->end || p->has_failed)
        return false;
    if (*p->at == '"') {
        p->is_quoted = true;
        return next_quoted(p);
    }
    p->word = p->at;
    while (p->at < p->end && !strchr(" \t\r\n\"\\", *p->at))
        p->at++;
    if (p->at == p->word) {
        parse_fail(p, "a '\\' outside quotes");
        return false;
    }
    /* The byte behind the word may start the next token, so only blanks may be overwritten. */
    if (p->at < p->end) {
        if (*p->at == '"' || *p->at == '\\') {
            parse_fail(p, "expected a blank after '%.*s'", (int)(p->at - p->word), p->word);
            return false;
        }
        if (*p->at == '\n')
            p->line++;
        *p->at++ = '\0';
    } else {
        *p->at = '\0';
    }
    return true;
}

static bool
word_is(const struct parser *p, const char *keyword)
{
    return !p->is_quoted && strcmp(p->word, keyword) == 0;
}

/* Reads a word that the grammar requires here; if there is none, sets an error that names `what`. */
static const char *
expect_word(struct parser *p, const char *what)
{
    if (!next_word(p)) {
        parse_fail(p, "expected %s, found the end of the file", what);
        return NULL;
    }
    return p->word;
}

static void *
grow_array(struct parser *p, void *array, size_t count, size_t size)
{
    if (count & (count - 1)) /* capacity is the next power of two */
        return array;
    void *more = reallocarray(array, count ? 2 * count : 1, size);
    if (!more)
        parse_fail(p, "no memory");
    return more;
}

static void
parse_option(struct parser *p, struct volfile_section *s)
{
    unsigned line = p->word_line;
    const char *key = expect_word(p, "an option's name");
    const char *value = key ? expect_word(p, "the option's value") : NULL;

    if (!value)
        return;
    struct option_value *more = grow_array(p, s->options, s->option_count, sizeof *more);
    if (!more)
        return;
    s->options = more;
    s->options[s->option_count++] = (struct option_value){key, value, line};
}

static struct volfile_section *
find_section(const struct volfile *v, const char *name, size_t before)
{
    for (size_t i = 0; i < before; i++) {
        if (strcmp(v->sections[i].name, name) == 0)
            return &v->sections[i];
    }
    return NULL;
}

/* Sections move while the array grows, so subvolumes are stored as names first: see link_subvolumes(). */
static bool
parse_subvolumes(struct parser *p, struct volfile_section *s)
{
    if (s->subvolume_count) {
        parse_fail(p, "a second 'subvolumes' in volume '%s'", s->name);
        return false;
    }
    while (expect_word(p, "a subvolume or 'end-volume'")) {
        if (word_is(p, "end-volume") || word_is(p, "option"))
            break;
        if (!find_section(p->v, p->word, p->v->section_count - 1)) {
            parse_fail(p, "subvolume '%s' of '%s' is not defined above", p->word, s->name);
            return false;
        }
        struct volfile_section **more = grow_array(p, s->subvolumes, s->subvolume_count, sizeof *more);
        if (!more)
            return false;
        s->subvolumes = more;
        s->subvolumes[s->subvolume_count++] = (void *)p->word;
    }
    if (!p->has_failed && !s->subvolume_count)
        parse_fail(p, "expected a subvolume's name after 'subvolumes'");
    return !p->has_failed;
}

static void
parse_section(struct parser *p)
{
    struct volfile *v = p->v;

    if (!word_is(p, "volume")) {
        parse_fail(p, "expected 'volume', found '%s'", p->word);
        return;
    }
    unsigned line = p->word_line;
    const char *name = expect_word(p, "the volume's name");
    if (!name)
        return;
    if (v->section_count == VOLFILE_SECTIONS_MAX) {
        parse_fail(p, "more than %d volumes", VOLFILE_SECTIONS_MAX);
        return;
    }
    if (find_section(v, name, v->section_count)) {
        parse_fail(p, "volume '%s' is defined twice", name);
        return;
    }
    struct volfile_section *more = grow_array(p, v->sections, v->section_count, sizeof *more);
    if (!more)
        return;
    v->sections = more;
    struct volfile_section *s = &v->sections[v->section_count++];
    *s = (struct volfile_section){.name = name, .line = line};

    if (!expect_word(p, "'type'"))
        return;
    if (!word_is(p, "type")) {
        parse_fail(p, "expected 'type' in volume '%s', found '%s'", name, p->word);
        return;
    }
    if (!(s->type = expect_word(p, "the volume's type")))
        return;
    bool have_word = expect_word(p, "'option', 'subvolumes' or 'end-volume'");
    while (have_word && !word_is(p, "end-volume")) {
        if (word_is(p, "option")) {
            parse_option(p, s);
            have_word = !p->has_failed && expect_word(p, "'option', 'subvolumes' or 'end-volume'");
        } else if (word_is(p, "subvolumes")) {
            have_word = parse_subvolumes(p, s);
        } else {
            parse_fail(p, "expected 'option', 'subvolumes' or 'end-volume' in volume '%s', found '%s'", name,
                 p->word);
            have_word = false;
        }
    }
}

static void
set_depth(struct volfile_section *s)
{
    s->depth = 1;
    for (size_t k = 0; k < s->subvolume_count; k++) {
        if (s->subvolumes[k]->depth >= s->depth)
            s->depth = s->subvolumes[k]->depth + 1;
    }
}

static void
link_subvolumes(struct parser *p)
{
    struct volfile *v = p->v;

    for (size_t i = 0; i < v->section_count && !p->has_failed; i++) {
        struct volfile_section *s = &v->sections[i];

        for (size_t k = 0; k < s->subvolume_count; k++)
            s->subvolumes[k] = find_section(v, (const char *)s->subvolumes[k], i);
        set_depth(s);
        p->word_line = s->line;
        if (s->depth > VOLFILE_DEPTH_MAX)
            parse_fail(p, "volume '%s' stands on %u layers: %d at most", s->name, s->depth - 1,
                 VOLFILE_DEPTH_MAX - 1);
    }
}

struct volfile *
volfile_parse(const char *path, const char *text, size_t len, char *error, size_t error_size)
{
    struct volfile *v = calloc(1, sizeof *v);
    struct parser p = {.path = path, .line = 1, .error = error, .error_size = error_size, .v = v};

    if (!v || !(v->path = strdup(path)) || !(v->text = malloc(len + 1))) {
        snprintf(error, error_size, "%s: no memory", path);
        volfile_free(v);
        return NULL;
    }
    memcpy(v->text, text, len);
    v->text[len] = '\0';
    p.at = v->text;
    p.end = v->text + len;
    if (memchr(text, '\0', len))
        parse_fail(&p, "a NUL byte in the text");
    if (memchr(text, '`', len))
        parse_fail(&p, "back-quotes (commands in a volfile) are not supported");
    while (!p.has_failed && next_word(&p))
        parse_section(&p);
    if (!p.has_failed && !v->section_count)
        parse_fail(&p, "expected 'volume', found the end of the file");
    if (!p.has_failed)
        link_subvolumes(&p);
    if (p.has_failed) {
        volfile_free(v);
        return NULL;
    }
    v->top = &v->sections[v->section_count - 1];
    return v;
}

/* Reads the whole file into text, which has room for `size` bytes. */
static bool
read_fully(int fd, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n = 1;

    for (; len < size && (n = read(fd, text + len, size - len)) > 0; len += (size_t)n)
        ;
    errno = n < 0 ? errno : EIO;
    return len == size;
}

static char *
read_open_text(int fd, size_t *len, const char *path, char *error, size_t error_size)
{
    struct stat st;
    char *text = NULL;

    if (fd < 0 || fstat(fd, &st) < 0) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        snprintf(error, error_size, "%s: not a regular file", path);
    } else if (st.st_size > VOLFILE_BYTES_MAX) {
        errno = EFBIG;
        snprintf(error, error_size, "%s: longer than %u bytes", path, VOLFILE_BYTES_MAX);
    } else if (!(text = malloc((size_t)st.st_size + 1))) {
        snprintf(error, error_size, "%s: no memory", path);
    } else if (!read_fully(fd, text, *len = (size_t)st.st_size)) {
        snprintf(error, error_size, "%s: could be read only in part", path);
        free(text);
        text = NULL;
    }
    return text;
}

char *
volfile_read_text(const char *path, size_t *len, char *error, size_t error_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = read_open_text(fd, len, path, error, error_size);
    int err = errno;

    if (fd >= 0)
        close(fd);
    errno = err;
    return text;
}

struct volfile *
volfile_read(const char *path, char *error, size_t error_size)
{
    size_t len;
    char *text = volfile_read_text(path, &len, error, error_size);
    struct volfile *v = text ? volfile_parse(path, text, len, error, error_size) : NULL;

    free(text);
    return v;
}

void
volfile_free(struct volfile *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->section_count; i++) {
        free(v->sections[i].options);
        free(v->sections[i].subvolumes);
    }
    for (size_t i = 0; i < v->override_count; i++)
        free(v->overrides[i]);
    free(v->overrides);
    free(v->sections);
    free(v->text);
    free(v->path);
    free(v);
}

int
volfile_insert_above(struct volfile *v, const struct volfile_section *below, const char *name,
                     const char *type)
{
    struct volfile_section *old = v->sections, *more, **subvolumes;
    size_t n = v->section_count, at = (size_t)(below - old) + 1;

    if (find_section(v, name, n))
        return -EEXIST;
    more = calloc(n + 1, sizeof *more);
    subvolumes = malloc(sizeof *subvolumes);
    if (!more || !subvolumes) {
        free(more);
        free(subvolumes);
        return -ENOMEM;
    }
    /* The new section stands right behind `below`, so each section still stands behind its subvolumes. */
    memcpy(more, old, at * sizeof *more);
    memcpy(more + at + 1, old + at, (n - at) * sizeof *more);
    for (size_t i = 0; i <= n; i++) {
        for (size_t k = 0; k < more[i].subvolume_count; k++) {
            size_t was = (size_t)(more[i].subvolumes[k] - old);

            more[i].subvolumes[k] = &more[was + (was >= at - 1)]; /* of `below`: the new section */
        }
    }
    *subvolumes = &more[at - 1];
    more[at] = (struct volfile_section){
        .name = name, .type = type, .subvolumes = subvolumes, .subvolume_count = 1};
    for (size_t i = at; i <= n; i++)
        set_depth(&more[i]);
    free(old);
    v->sections = more;
    v->section_count = n + 1;
    v->top = &more[n]; /* the top section is the last */
    return 0;
}

int
volfile_add_top(struct volfile *v, const char *name, const char *type)
{
    return volfile_insert_above(v, v->top, name, type);
}

/* Returns a copy that the volfile owns. */
static char *
keep_copy(struct volfile *v, const char *text)
{
    char **more = reallocarray(v->overrides, v->override_count + 1, sizeof *more);
    char *copy = more ? strdup(text) : NULL;

    if (more)
        v->overrides = more;
    if (copy)
        v->overrides[v->override_count++] = copy;
    return copy;
}

int
volfile_override(struct volfile *v, const char *pattern, const char *key, const char *value)
{
    for (size_t i = 0; i < v->section_count; i++) {
        struct volfile_section *s = &v->sections[i];

        if (fnmatch(pattern, s->name, 0) != 0)
            continue;
        struct option_value *more = reallocarray(s->options, s->option_count + 1, sizeof *more);
        if (!more)
            return -ENOMEM;
        s->options = more;
        struct option_value o = {keep_copy(v, key), keep_copy(v, value), 0};
        if (!o.key || !o.value)
            return -ENOMEM;
        s->options[s->option_count++] = o;
    }
    return 0;
}

/* ---- digest ---------------------------------------------------------------------------------- */

static void
digest_text(XXH3_state_t *state, const char *text)
{
    XXH3_128bits_update(state, text, strlen(text) + 1); /* the NUL keeps "ab" "c" and "a" "bc" apart */
}

static void
digest_section(XXH3_state_t *state, const struct volfile_section *s)
{
    const size_t counts[] = {s->option_count, s->subvolume_count};

    digest_text(state, s->name);
    digest_text(state, s->type);
    XXH3_128bits_update(state, counts, sizeof counts);
    for (size_t i = 0; i < s->option_count; i++) {
        digest_text(state, s->options[i].key);
        digest_text(state, s->options[i].value);
    }
    for (size_t i = 0; i < s->subvolume_count; i++)
        digest_text(state, s->subvolumes[i]->name);
}

struct volfile_digest
volfile_digest(const struct volfile *v)
{
    struct volfile_digest out;
    XXH128_canonical_t canonical;
    XXH3_state_t state;

    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    for (size_t i = 0; i < v->section_count; i++)
        digest_section(&state, &v->sections[i]);
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
    memcpy(out.bytes, canonical.digest, sizeof out.bytes);
    return out;
}

/* ---- shape ----------------------------------------------------------------------------------- */

static bool
is_same_section(const struct volfile_section *a, const struct volfile_section *b)
{
    bool is_same = strcmp(a->name, b->name) == 0 && strcmp(a->type, b->type) == 0 &&
                   a->subvolume_count == b->subvolume_count;

    for (size_t k = 0; k < a->subvolume_count && is_same; k++)
        is_same = strcmp(a->subvolumes[k]->name, b->subvolumes[k]->name) == 0;
    return is_same;
}

bool
volfile_has_shape(const struct volfile *a, const struct volfile *b)
{
    bool is_same = a->section_count == b->section_count;

    for (size_t i = 0; i < a->section_count && is_same; i++)
        is_same = is_same_section(&a->sections[i], &b->sections[i]);
    return is_same;
}
