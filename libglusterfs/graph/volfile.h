/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volfile: the text that describes a graph: sections `volume NAME / type T / option K V / subvolumes A B /
 * end-volume`.
 *
 * thread: only the owner uses a volfile until a graph takes it over; it is read-only afterwards. */
#ifndef KILN_GRAPH_VOLFILE_H
#define KILN_GRAPH_VOLFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "data/option.h"

#define VOLFILE_BYTES_MAX (4u << 20)
/* A name is searched for among all sections before it, so the work grows with the square of their number:
 * half a second for this many. A layer may hold a coroutine's stack for each call, so nesting is bounded,
 * too. */
#define VOLFILE_SECTIONS_MAX 16384
#define VOLFILE_DEPTH_MAX 128

struct volfile_section {
    const char *name, *type;
    unsigned line; /* of its `volume` word */
    struct option_value *options;
    size_t option_count;
    struct volfile_section **subvolumes; /* always sections above this one */
    size_t subvolume_count;
    unsigned depth; /* layers on the longest way down, including this one */
};

struct volfile {
    char *path;
    struct volfile_section *sections;
    size_t section_count;
    struct volfile_section *top; /* the section that is not a subvolume of another */
    char *text;                  /* all strings point into this text */
    char **overrides;            /* ... or are overrides */
    size_t override_count;
};

/* Returns the text of a file, which the caller frees. NULL: *error (error_size bytes) and errno say why. */
char *volfile_read_text(const char *path, size_t *len, char *error, size_t error_size);
/* Returns a volfile that the caller owns until volfile_free() or until a graph takes it over; `text` is
 * copied. On failure NULL, with file, line and the expected word in *error (error_size bytes). */
struct volfile *volfile_read(const char *path, char *error, size_t error_size);
struct volfile *volfile_parse(const char *path, const char *text, size_t len, char *error, size_t error_size);
/* NULL allowed. */
void volfile_free(struct volfile *v);

/* A hash of a volfile's contents: equal for volfiles with the same sections in the same order, regardless
 * of spaces and comments. */
struct volfile_digest {
    unsigned char bytes[16];
};
struct volfile_digest volfile_digest(const struct volfile *v);

/* Have both the same sections in the same order, with the same names, types and subvolumes? Options may
 * differ. */
bool volfile_has_shape(const struct volfile *a, const struct volfile *b);

/* Adds a section above `below`, a section of `v` that becomes its only subvolume; the sections that stood
 * above `below` stand above the new section then. Pointers to sections become invalid. `name` and `type` must
 * outlive `v`. 0, -ENOMEM; -EEXIST: the volfile has a section of this name already. */
int volfile_insert_above(struct volfile *v, const struct volfile_section *below, const char *name,
                         const char *type);
/* The same, above the top section. */
int volfile_add_top(struct volfile *v, const char *name, const char *type);

/* Sets `key` in every section whose name matches the shell pattern, overriding the file. 0 or -ENOMEM. */
int volfile_override(struct volfile *v, const char *pattern, const char *key, const char *value);

#endif
