/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* File names of clients cannot break a log line, or add a section to a statedump. */
#include <check.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/dump.h"
#include "log/escape.h"
#include "log/log.h"
#include "stack/xlator.h"

START_TEST(bytes_are_escaped)
{
    char out[64], tight[8];

    ck_assert_uint_eq(log_escape(out, sizeof out, "a\nb\x7f\x1b[\0\xc3\xa4", 9), 21);
    ck_assert_str_eq(out, "a\\x0ab\\x7f\\x1b[\\x00\xc3\xa4");
    /* Never half of an escape, always a NUL. */
    ck_assert_uint_eq(log_escape(tight, sizeof tight, "abcd\nf", 6), 4);
    ck_assert_str_eq(tight, "abcd");
    ck_assert_uint_eq(log_escape(tight, sizeof tight, "abc\nf", 5), 7);
    ck_assert_str_eq(tight, "abc\\x0a");
    ck_assert_uint_eq(log_escape(tight, 1, "abc", 3), 0);
    ck_assert_str_eq(tight, "");
}
END_TEST

static size_t
contents_of(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");

    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, size - 1, f);
    fclose(f);
    text[n] = '\0';
    return n;
}

START_TEST(line_feeds_in_a_message_are_escaped)
{
    char path[] = "/tmp/kiln-test-log-XXXXXX", text[32768], many[6000];
    int fd = mkstemp(path);

    ck_assert_int_eq(log_open(path), 0);
    log_event(LOG_ERROR, NULL, "test-forged", "cannot make %s",
              "d\n[2026] C [forged.c:1:f] 0-kilnd: on fire");
    memset(many, '\n', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    log_event(LOG_ERROR, NULL, "test-forged-long", "%s", many);
    log_close();
    size_t n = contents_of(path, text, sizeof text);
    unsigned lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    ck_assert_uint_eq(lines, 2);
    ck_assert_int_eq(text[n - 1], '\n');
    ck_assert_ptr_nonnull(strstr(text, "d\\x0a[2026]"));
    ck_assert_ptr_nonnull(strstr(text, "[test-forged]\n"));
    close(fd);
    unlink(path);
}
END_TEST

START_TEST(values_make_no_sections_in_a_statedump)
{
    char *text = NULL, big[9000];
    size_t size = 0;
    struct dump d = {.file = open_memstream(&text, &size)};

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    dump_section(&d, "lock.%s", "a]\n[forged");
    dump_line(&d, "dom\nain", "%s", "v\n\n[forged]\nkey=1");
    dump_line(&d, "big", "%s\n", big);
    fclose(d.file);
    ck_assert_ptr_nonnull(
        strstr(text, "\n[lock.a]\\x0a[forged]\ndom\\x0aain=v\\x0a\\x0a[forged]\\x0akey=1\nbig=xxx"));
    ck_assert_uint_eq(strlen(strstr(text, "big=")), 4 + sizeof big - 1 + 4 + 1);
    free(text);
}
END_TEST

/* A brick of a process, with one layer below its server. */
struct brick {
    struct log_group graph;
    struct xlator layers[2];
};

static void
make_brick(struct brick *b, char *name)
{
    *b = (struct brick){.graph = {.name = name},
                        .layers = {{.log = {"v-server", &b->graph}}, {.log = {"v-posix", &b->graph}}}};
}

static char log_file[] = "/tmp/kiln-test-log-XXXXXX", contents[1 << 20];

static void
begin_log(void)
{
    close(mkstemp(log_file));
    ck_assert_int_eq(log_open(log_file), 0);
}

static unsigned
count_of(const char *what)
{
    unsigned n = 0;

    for (const char *p = contents; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

static void
end_log(void)
{
    log_close();
    contents_of(log_file, contents, sizeof contents);
    unlink(log_file);
}

START_TEST(each_brick_logs_with_its_name_at_its_level)
{
    struct brick one, two;

    make_brick(&one, "/srv/b1");
    make_brick(&two, "/srv/b\n2");
    begin_log();
    log_set_group_level(&one.graph, true, LOG_DEBUG);
    for (int i = 0; i < 2; i++) {
        const struct xlator *xl = &(i ? &two : &one)->layers[1];

        log_event(LOG_DEBUG, xl, "test-brick-detail", "a detail");
        log_event(LOG_ERROR, xl, "test-brick-error", "an error");
    }
    log_set_group_level(&one.graph, true, LOG_NONE);
    log_event(LOG_ERROR, &one.layers[1], "test-brick-quiet", "nobody hears this");
    log_set_group_level(&one.graph, false, LOG_NONE);
    log_event(LOG_INFO, &one.layers[1], "test-brick-again", "as the process");
    end_log();
    ck_assert_uint_eq(count_of("0-v-posix: /srv/b1: a detail [test-brick-detail]\n"), 1);
    ck_assert_uint_eq(count_of("0-v-posix: /srv/b1: an error [test-brick-error]\n"), 1);
    ck_assert_uint_eq(count_of("0-v-posix: /srv/b\\x0a2: an error [test-brick-error]\n"), 1);
    ck_assert_uint_eq(count_of("test-brick-detail"), 1);
    ck_assert_uint_eq(count_of("test-brick-quiet"), 0);
    ck_assert_uint_eq(count_of("0-v-posix: /srv/b1: as the process"), 1);
}
END_TEST

static atomic_uint bursts_begun;

static void
note_burst(void)
{
    atomic_fetch_add(&bursts_begun, 1);
}

static void
complain(const struct brick *b, int times, const char *text)
{
    for (int i = 0; i < times; i++)
        log_event(LOG_ERROR, &b->layers[1], "test-flood", "%s", text);
}

/* One brick's flood leaves room for another's lines, and costs no memory. */
START_TEST(a_flood_is_counted_for_each_brick)
{
    struct brick one, two;

    make_brick(&one, "/srv/b1");
    make_brick(&two, "/srv/b2");
    begin_log();
    log_on_burst(note_burst);
    log_event(LOG_ERROR, NULL, "test-flood-first", "the C library reads its time zone");
    struct mallinfo2 before = mallinfo2();
    complain(&one, 1000, "it burns");
    struct mallinfo2 after = mallinfo2();
    complain(&two, 1, "here too");
    log_on_burst(NULL);
    ck_assert(log_flush()); /* the window is not over: no line yet */
    end_log();
    ck_assert_uint_eq(after.uordblks, before.uordblks);
    ck_assert_uint_eq(count_of("/srv/b1: it burns"), 10);
    ck_assert_uint_eq(count_of("/srv/b1: 990 more like this [test-flood]\n"), 1);
    ck_assert_uint_eq(count_of("/srv/b2: here too"), 1);
    ck_assert_uint_eq(count_of("more like this"), 1);
    ck_assert_uint_eq(atomic_load(&bursts_begun), 1);
}
END_TEST

enum { THREADS = 4, LINES = 20000 };

static void *
flood(void *arg)
{
    for (int i = 0; i < LINES; i++)
        log_event(LOG_ERROR, arg, "test-threads", "all at once");
    return NULL;
}

/* Each line is either written or counted. */
START_TEST(threads_lose_no_line)
{
    pthread_t threads[THREADS];
    struct brick one;
    unsigned more = 0, n;

    make_brick(&one, "/srv/b1");
    begin_log();
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, flood, &one.layers[1]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    end_log();
    for (const char *p = contents; (p = strstr(p, "/srv/b1: ")); p++)
        more += sscanf(p, "/srv/b1: %u more like this", &n) == 1 ? n : 0;
    ck_assert_uint_eq(count_of("all at once") + more, THREADS * LINES);
    ck_assert_uint_le(count_of("all at once"), 100);
}
END_TEST

/* More bricks have bursts than there is room for: bricks without room are counted together, and all are
 * bounded. */
START_TEST(bricks_beyond_the_table_share_one_limit)
{
    enum { BRICKS = 8000, EACH = 20 };
    struct brick *bricks = calloc(BRICKS, sizeof *bricks);
    static char name[] = "/srv/b";

    begin_log();
    for (int i = 0; i < BRICKS; i++) {
        make_brick(&bricks[i], name);
        for (int k = 0; k < EACH; k++)
            log_event(LOG_ERROR, &bricks[i].layers[1], "test-many-bricks", "trouble");
    }
    end_log();
    ck_assert_uint_le(count_of(": trouble"), (1024 + 1) * 10);
    ck_assert_uint_ge(count_of(": trouble"), 1000);
    free(bricks);
}
END_TEST

START_TEST(the_journal_gets_priorities)
{
    char stream[64];
    struct stat st;

    int fd = mkstemp(log_file), was = dup(STDERR_FILENO);
    ck_assert_int_eq(fstat(fd, &st), 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    dup2(fd, STDERR_FILENO);
    ck_assert_int_eq(log_open(NULL), 0);
    log_event(LOG_WARNING, NULL, "test-journal", "a warning");
    setenv("JOURNAL_STREAM", "1:1", 1);
    ck_assert_int_eq(log_open(NULL), 0);
    log_event(LOG_WARNING, NULL, "test-journal-not", "to a terminal");
    dup2(was, STDERR_FILENO);
    close(was);
    close(fd);
    end_log();
    ck_assert_ptr_eq(strstr(contents, "<4>W [test-log.c:"), contents);
    ck_assert_ptr_nonnull(strstr(contents, "\n[20"));
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("log");
    TCase *tc = tcase_create("log");

    tcase_add_test(tc, bytes_are_escaped);
    tcase_add_test(tc, line_feeds_in_a_message_are_escaped);
    tcase_add_test(tc, values_make_no_sections_in_a_statedump);
    tcase_add_test(tc, each_brick_logs_with_its_name_at_its_level);
    tcase_add_test(tc, a_flood_is_counted_for_each_brick);
    tcase_add_test(tc, threads_lose_no_line);
    tcase_add_test(tc, bricks_beyond_the_table_share_one_limit);
    tcase_add_test(tc, the_journal_gets_priorities);
    suite_add_tcase(s, tc);
    return s;
}

#include "base/test-main.h"
