/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* option: tables of options. Only the table names an option's key, type, default and the member for the
 * value.
 *
 *     struct ro_conf { bool on; };
 *     static const struct option ro_options[] = {
 *         OPT_BOOL(struct ro_conf, on, "read-only", "off"),
 *         OPT_END
 *     };
 *
 * option_parse() fills a new conf from a section's key/value pairs and the defaults, or returns an error
 * text. Init and reconfigure both use it, so a running fop sees the old conf or the new conf, never half
 * of each.
 *
 * thread: any; functions keep no pointers to their arguments, and tables are read-only. Only its owner may
 * use a conf. */
#ifndef KILN_DATA_OPTION_H
#define KILN_DATA_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
    OPTION_BOOL,    /* bool: on/off, yes/no, true/false, enable/disable, 1/0 */
    OPTION_INT,     /* int64_t, between min and max */
    OPTION_SIZE,    /* uint64_t bytes: 4096, 64KB, 1MB, 2GB ... (powers of 1024) */
    OPTION_TIME,    /* int64_t seconds: 30, 30s, 2m(in), 1h(r), 1d */
    OPTION_OCTAL,   /* int64_t, text in octal: 0777 */
    OPTION_PERCENT_OR_SIZE, /* uint64_t: "1" or "1%" = percent (below 100), else bytes */
    OPTION_STR,     /* char *, NULL if absent and without default; freed with the conf */
    OPTION_ENUM,    /* int: index into `choices` */
    OPTION_UUID,    /* struct gfid, 36 characters, not null; null if absent */
    OPTION_MUST_BE, /* nothing is stored; a value other than `text_default` is refused as "not built" */
    OPTION_IGNORED, /* known to stock, without effect here: accepted */
    /* prefix of keys that the layer itself reads (auth.addr.*): accepted here */
    OPTION_PREFIX,
};

struct option {
    const char *key;
    enum option_type type;
    size_t offset;
    const char *text_default; /* parsed like a given value; NULL: zero / none */
    int64_t min, max;         /* INT, TIME; SIZE if max is not 0 */
    const char *const *choices; /* ENUM; ends with NULL */
};

#define OPT_BOOL(type, member, key, def) {key, OPTION_BOOL, offsetof(type, member), def, 0, 0, NULL}
#define OPT_INT(type, member, key, def, min, max)                                                            \
    {                                                                                                        \
        key, OPTION_INT, offsetof(type, member), def, min, max, NULL                                         \
    }
#define OPT_SIZE(type, member, key, def, max) {key, OPTION_SIZE, offsetof(type, member), def, 0, max, NULL}
#define OPT_TIME(type, member, key, def, min, max)                                                           \
    {                                                                                                        \
        key, OPTION_TIME, offsetof(type, member), def, min, max, NULL                                        \
    }
#define OPT_OCTAL(type, member, key, def) {key, OPTION_OCTAL, offsetof(type, member), def, 0, 07777, NULL}
#define OPT_PERCENT_OR_SIZE(type, member, key, def) \
    {key, OPTION_PERCENT_OR_SIZE, offsetof(type, member), def, 0, 0, NULL}
#define OPT_STR(type, member, key, def) {key, OPTION_STR, offsetof(type, member), def, 0, 0, NULL}
#define OPT_ENUM(type, member, key, def, choices)                                                            \
    {                                                                                                        \
        key, OPTION_ENUM, offsetof(type, member), def, 0, 0, choices                                         \
    }
#define OPT_UUID(type, member, key) {key, OPTION_UUID, offsetof(type, member), NULL, 0, 0, NULL}
#define OPT_MUST_BE(key, value) {key, OPTION_MUST_BE, 0, value, 0, 0, NULL}
#define OPT_IGNORED(key) {key, OPTION_IGNORED, 0, NULL, 0, 0, NULL}
#define OPT_PREFIX(key) {key, OPTION_PREFIX, 0, NULL, 0, 0, NULL}
/* A default that is given as a macro with a number. */
#define OPT_DEFAULT(number) OPT_DEFAULT_TEXT(number)
#define OPT_DEFAULT_TEXT(number) #number
#define OPT_END {NULL, OPTION_IGNORED, 0, NULL, 0, 0, NULL}

/* One `option KEY VALUE` line. */
struct option_value {
    const char *key, *value;
    unsigned line; /* of the volfile; 0: from the command line */
};

/* Fills `conf` (of the type's conf_size, zeroed by the caller). `unknown` is called for each unknown key
 * (stock warns and ignores). On failure `error` names key, value, line and the expected value, and nothing
 * is left to free. 0, -EINVAL, -EOPNOTSUPP (MUST_BE), -ENOMEM. */
int option_parse(const struct option *table, const struct option_value *values, size_t count, void *conf,
                 void (*unknown)(const struct option_value *value, void *arg), void *arg, char *error,
                 size_t error_size);

/* Like option_parse(), for a running layer: an option with a bad value keeps its value in `before`, a conf
 * filled by option_parse(), and `refused` is called with the error text; all other options are set. 0 or
 * -ENOMEM. */
struct option_sink {
    void (*unknown)(const struct option_value *value, void *arg);
    void (*refused)(const char *what, void *arg);
    void *arg;
};
int option_change(const struct option *table, const struct option_value *values, size_t count, void *conf,
                  const void *before, const struct option_sink *sink);

/* Frees the strings of a conf that option_parse() has filled, not the conf itself. Called once. */
void option_conf_fini(const struct option *table, void *conf);

/* Parse one value, for other readers of volfiles and command lines: sizes in bytes, times in seconds. 0 or
 * -EINVAL, and then *out is unchanged. */
int option_bool(const char *text, bool *out);
int option_int(const char *text, int64_t *out);
int option_size(const char *text, uint64_t *out);
int option_time(const char *text, int64_t *out);

#endif
