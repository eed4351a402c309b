/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs libFuzzer on the parsers of text: volfiles, options, the lists of addresses that may log in, ACLs as
 * text, numbers. The first byte selects the parser.
 *
 * The linker's --wrap replaces the resolver for names that are no addresses, so that the target needs no
 * network. With --wrap every run is also repeated with an allocation that fails.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gfid.h"
#include "data/option.h"
#include "event/worker.h"
#include "graph/volfile.h"
#include "log/log.h"
#include "xlators/protocol/server/auth.h"
#include "xlators/storage/posix/xattr/acl-text.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
void __wrap_freeaddrinfo(struct addrinfo *list);

struct conf {
    bool yes;
    int64_t number, seconds, octal;
    uint64_t bytes, share;
    char *text;
    int choice;
    struct gfid id;
};

static const char *const choices[] = {"one", "two", "three", NULL};
static const struct option table[] = {
    OPT_BOOL(struct conf, yes, "bool", "on"),
    OPT_INT(struct conf, number, "int", "7", -10, 4096),
    OPT_SIZE(struct conf, bytes, "size", "1MB", 1ll << 40),
    OPT_TIME(struct conf, seconds, "time", "2m", 0, 86400),
    OPT_OCTAL(struct conf, octal, "octal", "0777"),
    OPT_PERCENT_OR_SIZE(struct conf, share, "share", "1%"),
    OPT_STR(struct conf, text, "text", "word"),
    OPT_ENUM(struct conf, choice, "enum", "two", choices),
    OPT_UUID(struct conf, id, "uuid"),
    OPT_MUST_BE("fixed", "off"),
    OPT_IGNORED("ignored"),
    OPT_PREFIX("auth."),
    OPT_END,
};

/* Every second name exists. */
int
__wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    static struct sockaddr_in address = {.sin_family = AF_INET};
    static struct addrinfo found = {
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&address, .ai_addrlen = sizeof address};

    (void)service;
    (void)hints;
    if (strlen(node) % 2)
        return EAI_NONAME;
    inet_pton(AF_INET, "10.1.2.3", &address.sin_addr);
    *out = &found;
    return 0;
}

void
__wrap_freeaddrinfo(struct addrinfo *list)
{
    (void)list;
}

#include "tests/wire/fuzz-memory.h"

static void
unknown_option(const struct option_value *value, void *arg)
{
    *(size_t *)arg += strlen(value->key);
}

static void
refused_option(const char *what, void *arg)
{
    *(size_t *)arg += strlen(what);
}

static void
must_be_bounded(const struct conf *conf)
{
    if (conf->choice < 0 || conf->choice > 2 || conf->octal < 0 || conf->octal > 07777 || !conf->text)
        abort();
}

/* Changes the options of a running layer. Options that are refused must keep their values. */
static void
change_options(const struct option_value *values, size_t count, const struct conf *before)
{
    struct conf conf = {0};
    size_t said = 0;
    const struct option_sink sink = {unknown_option, refused_option, &said};

    if (option_change(table, values, count, &conf, before, &sink))
        return;
    must_be_bounded(&conf);
    option_conf_fini(table, &conf);
}

static void
parse_options(const struct option_value *values, size_t count)
{
    struct conf conf = {0}, usual = {0};
    char error[200];
    size_t unknown = 0;

    if (option_parse(table, values, count, &conf, unknown_option, &unknown, error, sizeof error) == 0) {
        must_be_bounded(&conf);
        option_conf_fini(table, &conf);
    } else if (strnlen(error, sizeof error) == sizeof error) {
        abort();
    }
    if (option_parse(table, NULL, 0, &usual, unknown_option, &unknown, error, sizeof error) == 0) {
        change_options(values, count, &usual);
        option_conf_fini(table, &usual);
    }
}

static void
ask(const struct option_value *values, size_t count)
{
    static const struct {
        int family;
        const char *text;
    } peers[] = {
        {AF_INET, "10.1.2.3"}, {AF_INET6, "fe80::1"}, {AF_INET6, "::ffff:127.0.0.1"}, {AF_UNIX, NULL}};
    struct auth_rules *rules = auth_rules_new(values, count);

    if (rules) {
        struct auth_rules *held = auth_rules_ref(rules);

        (void)auth_rules_flaw(held);
        auth_rules_unref(held);
    }
    for (size_t i = 0; rules && i < sizeof peers / sizeof peers[0]; i++) {
        struct sockaddr_storage peer = {.ss_family = (sa_family_t)peers[i].family};
        bool is_trusted = false;

        if (peers[i].family == AF_INET)
            inet_pton(AF_INET, peers[i].text, &((struct sockaddr_in *)&peer)->sin_addr);
        else if (peers[i].text)
            inet_pton(AF_INET6, peers[i].text, &((struct sockaddr_in6 *)&peer)->sin6_addr);
        struct auth_question q = {
            .brick = "/b", .peer = &peer, .subdir = i % 2 ? "/sub" : "/", .allow_insecure = i < 3};

        if (i > 1)
            q.username = "user", q.password = "secret", q.is_strict = i > 2;
        (void)auth_check(rules, &q, &is_trusted);
    }
    auth_rules_unref(rules);
}

/* Parses a file, as a daemon does, or the text in memory. */
static struct volfile *
parse_volfile(const char *text, size_t size, bool by_file)
{
    char error[256], path[64];

    if (!by_file)
        return volfile_parse("fuzz.vol", text, size, error, sizeof error);
    int fd = memfd_create("fuzz.vol", MFD_CLOEXEC);

    if (fd < 0 || write(fd, text, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct volfile *v = volfile_read(path, error, sizeof error);

    close(fd);
    return v;
}

static void
run_volfile(const char *text, size_t size)
{
    struct volfile *v = parse_volfile(text, size, size % 16 == 0);

    if (!v)
        return;
    for (size_t i = 0; i < v->section_count; i++) {
        struct volfile_section *s = &v->sections[i];

        for (size_t k = 0; k < s->subvolume_count; k++)
            if (s->subvolumes[k] >= s)
                abort();
        parse_options(s->options, s->option_count);
        ask(s->options, s->option_count);
    }
    /* The same text has the same digest, from a file and from memory. */
    struct volfile *same = parse_volfile(text, size, false);
    struct volfile_digest digest = volfile_digest(v);

    if (same) {
        struct volfile_digest other = volfile_digest(same);

        if (memcmp(&digest, &other, sizeof digest) != 0 || !volfile_has_shape(v, same))
            abort();
        /* Another last section is another shape. */
        if (same->section_count) {
            struct volfile_section *last = &same->sections[same->section_count - 1];

            last->subvolume_count -= last->subvolume_count > 0;
            if (volfile_has_shape(v, same) != (v->sections[v->section_count - 1].subvolume_count == 0))
                abort();
        }
        volfile_free(same);
    }
    (void)volfile_override(v, "*a*", "text", "x");
    volfile_free(v);
}

/* A file that is no volfile is refused with a reason. */
static void
refuses(const char *path)
{
    char error[256] = "";
    struct volfile *v = volfile_read(path, error, sizeof error);

    if (v || !*error)
        abort();
}

static void
refuses_files(void)
{
    char path[64];
    int fd = memfd_create("long.vol", MFD_CLOEXEC);

    refuses("/nonexistent/volfile");
    refuses("/");
    if (fd < 0 || ftruncate(fd, VOLFILE_BYTES_MAX + 1ll) < 0)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    refuses(path);
    close(fd);
}

/* Lines "KEY VALUE". */
static void
run_options(char *text, bool is_auth)
{
    struct option_value values[32];
    size_t count = 0;
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line && count < 32; line = strtok_r(NULL, "\n", &save)) {
        char *value = strchr(line, ' ');

        if (!value)
            continue;
        *value++ = '\0';
        values[count++] = (struct option_value){line, value, (unsigned)count};
    }
    if (is_auth)
        ask(values, count);
    else
        parse_options(values, count);
}

/* An ACL that is none, or room that does not do. */
static void
refuses_acls(unsigned char *acl, size_t n, size_t len)
{
    static char out[ACL_TEXT_MAX];
    const size_t rooms[] = {0, 1, len / 2, len};

    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
        if (acl_to_text(acl, n, out, rooms[i]) != -E2BIG)
            abort();
    if (acl_to_text(acl, n - 1, out, sizeof out) != -EINVAL)
        abort();
    acl[4] ^= 0x80; /* the first entry's tag */
    if (acl_to_text(acl, n, out, sizeof out) != -EINVAL)
        abort();
    acl[0] ^= 1; /* the version */
    if (acl_to_text(acl, n, out, sizeof out) != -EINVAL)
        abort();
}

static void
run_acl(const char *text)
{
    unsigned char acl[ACL_BYTES_MAX], again[ACL_BYTES_MAX];
    static char out[ACL_TEXT_MAX];
    ssize_t n = acl_from_text(text, acl);

    if (n < 0)
        return;
    ssize_t len = acl_to_text(acl, (size_t)n, out, sizeof out);

    if (len < 0)
        return;
    /* The text of an ACL is read as the same ACL. */
    if (acl_from_text(out, again) != n || memcmp(acl, again, (size_t)n) != 0)
        abort();
    refuses_acls(acl, (size_t)n, (size_t)len);
}

static void
run_numbers(const char *text)
{
    bool yes;
    int64_t number;
    uint64_t bytes;
    struct gfid gfid;

    (void)option_bool(text, &yes);
    (void)option_int(text, &number);
    (void)option_size(text, &bytes);
    (void)option_time(text, &number);
    (void)gfid_parse(text, strlen(text), &gfid);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_set_level(LOG_CRITICAL);
    refuses_files();
    return 0;
}

static void
run(const uint8_t *data, size_t size, unsigned failing)
{
    /* A copy of the exact size, so that ASan sees a step outside; with a NUL for the parsers of strings. */
    unsigned kind = data[0] % 5;
    size_t n = size - 1 + (kind != 0);
    char *text = malloc(n ? n : 1);

    memcpy(text, data + 1, size - 1);
    if (kind)
        text[size - 1] = '\0';
    allocations_left = failing;
    switch (kind) {
    case 0:
        run_volfile(text, size - 1);
        break;
    case 1:
    case 2:
        run_options(text, kind == 2);
        break;
    case 3:
        run_acl(text);
        break;
    default:
        run_numbers(text);
    }
    allocations_left = 0;
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    run(data, size, 0);
    run(data, size, failing_allocation(data, size));
    return 0;
}
