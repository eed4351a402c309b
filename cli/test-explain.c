/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The sentences of kiln explain about dumps that these tests write. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "cli/explain.h"

#define LOCK_END                                                                                             \
    ", client=0x1, connection-id=CTX_ID:x-GRAPH_ID:0-PID:%s-HOST:%s-PC_NAME:v-client-0-RECON_NO:-0, "

static json_t *
explained(const char *text)
{
    json_t *dump = explain_read(text, strlen(text));

    ck_assert_ptr_nonnull(dump);
    json_t *all = explain_say(dump);
    ck_assert_ptr_nonnull(all);
    json_decref(dump);
    return all;
}

/* Tells whether a sentence of a part has both words. */
static bool
says(const json_t *all, const char *part, const char *word, const char *other)
{
    const json_t *sentence;
    size_t i;

    json_array_foreach(json_object_get(all, part), i, sentence)
    {
        const char *text = json_string_value(sentence);
        if (strstr(text, word) && strstr(text, other))
            return true;
    }
    return false;
}

static json_t *
of_locks(const char *lines)
{
    char text[4096];

    snprintf(text, sizeof text, "[xlator.features.locks.v-locks.inode]\npath=/f\n%s", lines);
    return explained(text);
}

START_TEST(only_locks_in_the_way_are_named)
{
    static const struct {
        const char *held, *wanted;
        bool is_in_the_way;
    } cases[] = {
        {"type=WRITE, whence=0, start=0, len=0", "type=READ, whence=0, start=50, len=1", true},
        {"type=READ, whence=0, start=0, len=0", "type=READ, whence=0, start=50, len=1", false},
        {"type=WRITE, whence=0, start=0, len=50", "type=WRITE, whence=0, start=50, len=0", false},
        {"type=WRITE, whence=0, start=0, len=51", "type=WRITE, whence=0, start=50, len=0", true},
        {"type=WRITE, whence=0, start=60, len=0", "type=WRITE, whence=0, start=50, len=10", false},
    };
    char lines[2048];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(lines, sizeof lines,
                 "posixlk.posixlk[0](ACTIVE)=%s, pid = 7, owner=aa" LOCK_END
                 "granted at 2026-01-02 03:04:05 +0000\n"
                 "posixlk.posixlk[1](BLOCKED)=%s, pid = 8, owner=bb" LOCK_END
                 "blocked at 2026-01-02 03:05:06 +0000\n",
                 cases[i].held, "70", "here", cases[i].wanted, "80", "there");
        json_t *all = of_locks(lines);
        ck_assert(says(all, "waits", "/f: process 8 on there", "2026-01-02 03:05:06"));
        ck_assert_msg(says(all, "waits", "by process 7 on here", "2026-01-02 03:04:05") ==
                          cases[i].is_in_the_way, "case %zu", i);
        json_decref(all);
    }
}
END_TEST

START_TEST(entry_locks_are_of_names_and_domains)
{
    static const char line[] =
        "lock-dump.domain.domain=%s\nentrylk.entrylk[0](ACTIVE)=type=ENTRYLK_WRLCK on basename=%s, pid = 7, "
        "owner=aa" LOCK_END "granted at 2026-01-02 03:04:05 +0000\nlock-dump.domain.domain=one\n"
        "entrylk.entrylk[0](BLOCKED)=type=ENTRYLK_WRLCK on basename=n, pid = 8, owner=bb" LOCK_END
        "blocked at 2026-01-02 03:05:06 +0000\n";
    static const struct {
        const char *domain, *name;
        bool is_in_the_way;
    } cases[] = {{"one", "n", true}, {"one", "(null)", true}, {"one", "m", false}, {"two", "n", false}};
    char lines[2048];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(lines, sizeof lines, line, cases[i].domain, cases[i].name, "70", "here", "80", "there");
        json_t *all = of_locks(lines);
        ck_assert_msg(says(all, "waits", "by process 7", "process 8") == cases[i].is_in_the_way, "case %zu",
                      i);
        json_decref(all);
    }
}
END_TEST

START_TEST(queues_and_bricks_are_told)
{
    json_t *all =
        explained("[mempool.0]\npool-name=lock\nactive-count=3\nsize=2048\ncached-hot=1\ncached-cold=2\n"
                  "owner=id 1, brick /b/1, active 3, bytes 1536\n"
                  "[brick./b/1]\nchild-up=0\ndraining=0\nparked=features/locks lk 2\ninodes=5\n"
                  "[xlator.performance/io-threads.v]\nmaximum_threads_count=16\n"
                  "HIGH_priority_running=16\nHIGH_priority_parked=9\n");

    ck_assert(says(all, "memory", "2.0 KiB for lock", "3 in use, 3 cached"));
    ck_assert(says(all, "bricks", "/b/1", "1.5 KiB"));
    ck_assert(says(all, "waits", "/b/1", "disk has failed"));
    ck_assert(says(all, "waits", "/b/1", "features/locks lk 2"));
    ck_assert(says(all, "waits", "9 calls of priority HIGH", "16 are"));
    json_decref(all);
}
END_TEST

START_TEST(slow_calls_are_told)
{
    json_t *all =
        explained("[brick./b/1]\ninodes=5\n[xlator.debug/io-stats./b/1]\nduration=9\n"
                  "slow.0=fop=writev total_us=2500000 worker_us=1000 queue_us=600000 locks_us=1800000 "
                  "disk_us=99000 reply_us=0 age_s=7 bytes=4096 errno=0 pid=12 client=x object=/dir/a file\n");

    ck_assert(says(all, "slow", "/b/1: writev of /dir/a file took 2.5 s, 7 s before",
                   "600.0 ms in the brick's queue for the disk, 1.8 s behind locks of other clients."));
    json_decref(all);
}
END_TEST

START_TEST(json_is_read_too)
{
    json_t *all = explained(
        "{\"resident_bytes\": 1048576, \"threads\": 9, \"top\": [{\"pool\": \"lock\", \"bytes\": 64,"
        " \"live\": 1, \"hot\": 0, \"cold\": 0}], \"bricks\": [{\"brick\": \"/b\", \"volume\": \"v\","
        " \"memory_bytes\": 3, \"is_cut\": false, \"sections\": [{\"section\": \"brick./b\","
        " \"lines\": [[\"inodes\", \"4\"]]}]}]}");

    ck_assert(says(all, "memory", "1.0 MiB", "process"));
    ck_assert(says(all, "memory", "64 bytes for lock", "1 in use"));
    ck_assert(says(all, "bricks", "/b: its objects take 3 bytes", "4 inodes"));
    json_decref(all);
}
END_TEST

START_TEST(what_is_no_dump_is_refused)
{
    static const char *const texts[] = {"",        "{",    "{}", "[]", "{\"bricks\": 1}", "{\"bricks\": [1]}",
                                        "words\n", "=\n\n"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(!explain_read(texts[i], strlen(texts[i])), "%s", texts[i]);
}
END_TEST

/* The dump is cut at every byte, and holds bytes that are no text. */
START_TEST(a_cut_dump_does_no_harm)
{
    static const char text[] =
        "[brick./b]\ninodes=1\nparked=\xff\xfe\n[xlator.features.locks.v.inode]\npath=/\xc3\n"
        "posixlk.posixlk[0](BLOCKED)=type=WRITE, start=, connection-id=-PID:-HOST:-PC_NAME:\n"
        "owner=id 1, brick , active , bytes \n";

    for (size_t size = 0; size < sizeof text; size++) {
        char *copy = malloc(size + 1); /* the address sanitizer sees reads beyond the end */
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, text, size);
        json_t *dump = explain_read(copy, size);
        if (dump)
            json_decref(explain_say(dump));
        json_decref(dump);
        free(copy);
    }
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("explain");
    TCase *t = tcase_create("explain");

    tcase_add_test(t, only_locks_in_the_way_are_named);
    tcase_add_test(t, entry_locks_are_of_names_and_domains);
    tcase_add_test(t, queues_and_bricks_are_told);
    tcase_add_test(t, slow_calls_are_told);
    tcase_add_test(t, json_is_read_too);
    tcase_add_test(t, what_is_no_dump_is_refused);
    tcase_add_test(t, a_cut_dump_does_no_harm);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
