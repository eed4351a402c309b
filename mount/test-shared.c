/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Requests to the shared process: the packets of requests, and bytes that are no request. The test process
 * has both ends of the socket. */
#include "mount/shared.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test-child.h"
#include "mount/mount.h"
#include "mount/option-table.h"

static char packet[65536];
static struct mount_options got;
static const char *mountpoint, *word;

/* ---- the mounts of the process that listens -------------------------------------------------- */

static int answer; /* of mounts_add(), or the status that a mount settles with */

int
mounts_add(const struct mount_options *o, const char *where, char *words,
           void (*settled)(int status, const char *why, void *arg), void *arg)
{
    if (answer < 0)
        return answer;
    ck_assert_str_eq(o->volume, "/v");
    ck_assert_str_eq(where, "/mnt");
    free(words);
    settled(answer, answer ? "because" : NULL, arg);
    return 0;
}

/* ---- packets --------------------------------------------------------------------------------- */

static const struct mount_options all = {
    .volume = "/v",
    .servers = {"a", "b"},
    .server_count = 2,
    .server_port = 24008,
    .subdir = "/s",
    .source = "a:/v/s",
    .attr_timeout = "0.5",
    .acl = true,
    .xlator_options = {"*.a=b", "*.c=d=e"},
    .xlator_option_count = 2,
    .kernel_options = {"nosuid"},
    .kernel_option_count = 1,
};

START_TEST(what_is_sent_is_what_comes)
{
    int bytes = shared_encode(&all, "/mnt", packet, sizeof packet);

    ck_assert_int_gt(bytes, 0);
    ck_assert_msg(shared_decode(packet, (size_t)bytes, &got, &mountpoint, &word) == 0, "%s", word);
    ck_assert_str_eq(mountpoint, "/mnt");
    ck_assert_str_eq(got.volume, all.volume);
    ck_assert_uint_eq(got.server_count, 2);
    ck_assert_str_eq(got.servers[1], "b");
    ck_assert_uint_eq(got.server_port, 24008);
    ck_assert_str_eq(got.subdir, "/s");
    ck_assert_str_eq(got.source, "a:/v/s");
    ck_assert_str_eq(got.attr_timeout, "0.5");
    ck_assert_ptr_null(got.entry_timeout);
    ck_assert(got.acl && !got.is_read_only);
    ck_assert_uint_eq(got.xlator_option_count, 2);
    ck_assert_str_eq(got.xlator_options[1], "*.c=d=e");
    ck_assert_str_eq(got.kernel_options[0], "nosuid");
}
END_TEST

/* Sets the member of an option that the packet must carry. False: the option has no such member. */
static bool
set_member(struct mount_options *o, const struct mount_option *row)
{
    void *at = (char *)o + row->at;

    switch (row->kind) {
    case OPTION_TEXT:
        *(const char **)at = "x";
        return true;
    case OPTION_TEXTS:
        *(const char **)at = "x";
        *(unsigned *)(void *)((char *)o + row->count_at) = 1;
        return true;
    case OPTION_FLAG:
        *(bool *)at = true;
        return true;
    case OPTION_NUMBER:
        *(unsigned *)at = 24009;
        return true;
    default:
        return false;
    }
}

static bool
is_same_member(const struct mount_option *row, const struct mount_options *o, const struct mount_options *as)
{
    const void *a = (const char *)o + row->at, *b = (const char *)as + row->at;

    if (row->kind == OPTION_FLAG)
        return *(const bool *)a == *(const bool *)b;
    if (row->kind == OPTION_NUMBER)
        return *(const unsigned *)a == *(const unsigned *)b;
    const char *text = *(const char *const *)a, *other = *(const char *const *)b;

    return text && other ? strcmp(text, other) == 0 : text == other;
}

/* An option that a row names cannot be lost on the way to the shared process. */
START_TEST(each_option_of_a_mount_is_sent)
{
    unsigned sent = 0, kept = 0;

    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        struct mount_options o = {.volume = "/v", .servers = {"a"}, .server_count = 1};

        if (!set_member(&o, row))
            continue;
        int bytes = shared_encode(&o, "/mnt", packet, sizeof packet);
        ck_assert_int_gt(bytes, 0);
        ck_assert_msg(shared_decode(packet, (size_t)bytes, &got, &mountpoint, &word) == 0, "%s", row->name);
        ck_assert_msg(is_same_member(row, &got, &o) != row->is_of_process, "--%s", row->name);
        *(row->is_of_process ? &kept : &sent) += 1;
    }
    ck_assert_uint_ge(sent, 15);
    ck_assert_uint_ge(kept, 5);
}
END_TEST

START_TEST(each_option_is_described)
{
    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        ck_assert_msg(!row->help == !row->manual, "--%s has a text in one of --help and the manual",
                      row->name);
        ck_assert_msg(!row->to == !row->key, "--%s names a layer or a key, not both", row->name);
        ck_assert_msg(row->kind != OPTION_NUMBER || row->take != TAKE_PLAIN, "--%s is not read", row->name);
        ck_assert_msg(row->kind != OPTION_TEXT || row->arg, "--%s has no value", row->name);
        for (const struct mount_option *other = row + 1; other->name; other++) {
            ck_assert_msg(strcmp(row->name, other->name) != 0, "--%s has two rows", row->name);
            ck_assert_msg(!row->fstab || !other->fstab || strcmp(row->fstab, other->fstab) != 0, "%s",
                          row->fstab);
        }
    }
}
END_TEST

START_TEST(what_has_no_room_is_not_sent)
{
    int bytes = shared_encode(&all, "/mnt", packet, sizeof packet);

    for (int room = 0; room < bytes; room++)
        ck_assert_int_eq(shared_encode(&all, "/mnt", packet, (size_t)room), -ENOSPC);
}
END_TEST

/* `text` with a NUL for each bar, behind a true namespace. */
static int
decode(const char *text)
{
    int at = shared_encode(&(struct mount_options){0}, "/mnt", packet, sizeof packet);

    at = (int)strlen(packet) + 1; /* the namespace is the first word */
    for (; *text; text++)
        packet[at++] = *text == '|' ? '\0' : *text;
    return shared_decode(packet, (size_t)at, &got, &mountpoint, &word);
}

START_TEST(a_packet_that_is_none_is_refused)
{
    char many[16 * 64] = "";

    ck_assert_int_eq(decode("mountpoint=/m|volume=/v|server=a|"), 0);
    ck_assert_int_eq(decode("mountpoint=/m|volume=/v|server=a"), -EINVAL);
    ck_assert_int_eq(decode("mountpoint=/m|volume=/v|"), -EINVAL);
    ck_assert_int_eq(decode("volume=/v|server=a|"), -EINVAL);
    ck_assert_int_eq(decode("mountpoint=/m|volume=/v|server=a|colour=blue|"), -EINVAL);
    ck_assert_int_eq(decode("mountpoint=/m|volume=/v|server=a|acl|"), -EINVAL);
    ck_assert_int_eq(decode("mountpoint=/m|volume=/v|server=a|namespace=mnt:[1]|"), -EINVAL);
    ck_assert_str_eq(word, "namespace");
    strcpy(many, "mountpoint=/m|volume=/v|");
    for (int i = 0; i <= SPEC_SERVERS_MAX; i++)
        strcat(many, "server=a|");
    ck_assert_int_eq(decode(many), -EINVAL);
    ck_assert_int_eq(shared_decode(packet, 0, &got, &mountpoint, &word), -EINVAL);
}
END_TEST

/* ---- the socket ------------------------------------------------------------------------------ */

static char path[64], why[256];
static int status;

static enum shared_outcome
join(void)
{
    return shared_join(path, &all, "/mnt", &status, why, sizeof why);
}

START_TEST(one_listens_and_the_next_joins)
{
    char dir[] = "/tmp/kiln-shared.XXXXXX", lock[80];

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(join(), SHARED_NONE);
    ck_assert_int_eq(shared_find(path, &all, "/mnt", &status, why, sizeof why), SHARED_FIRST);
    ck_assert_int_eq(join(), SHARED_NONE);
    ck_assert_int_eq(shared_listen(path), 0);
    answer = 0;
    ck_assert_int_eq(join(), SHARED_JOINED);
    ck_assert_int_eq(status, 0);
    answer = 3;
    ck_assert_int_eq(shared_find(path, &all, "/mnt", &status, why, sizeof why), SHARED_JOINED);
    ck_assert_int_eq(status, 3);
    ck_assert_str_eq(why, "because");
    answer = -ENOMEM;
    ck_assert_int_eq(join(), SHARED_JOINED);
    ck_assert_int_eq(status, EXIT_FAILURE);
    answer = -ESHUTDOWN; /* the process is about to end, and counts as gone */
    ck_assert_int_eq(join(), SHARED_NONE);
    shared_end(path);
    ck_assert_int_eq(join(), SHARED_NONE);
    unlink(lock);
    rmdir(dir);
}
END_TEST

/* ---- another user ---------------------------------------------------------------------------- */

enum { NOBODY = 65534 };

static struct sockaddr_un
address(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    strcpy(a.sun_path, path);
    return a;
}

/* Runs `act` as another user. Returns the result of `act`. */
static int
as_nobody(int (*act)(void))
{
    pid_t pid = test_fork();

    if (pid == 0)
        _exit(setresuid(NOBODY, NOBODY, NOBODY) ? 99 : act());
    return test_child_status(pid);
}

/* Sends a request that root would get an answer to. Returns 0 if no reply comes. */
static int
ask_as_root_does(void)
{
    struct sockaddr_un a = address();
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), bytes = shared_encode(&all, "/mnt", packet, sizeof packet);
    char byte;

    if (connect(fd, (struct sockaddr *)&a, sizeof a))
        return 97;
    (void)!send(fd, packet, (size_t)bytes, MSG_NOSIGNAL);
    return recv(fd, &byte, 1, 0) > 0;
}

static int
is_kept_out(void)
{
    return join() == SHARED_NONE ? 0 : 1;
}

static int
trusts_no_root(void)
{
    return join() == SHARED_FAILED ? 0 : 1;
}

static void
in_a_folder_of_all(char dir[])
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chmod(dir, 0777), 0);
    snprintf(path, sizeof path, "%s/socket", dir);
}

START_TEST(another_user_asks_in_vain)
{
    char dir[] = "/tmp/kiln-shared.XXXXXX", lock[80];

    if (geteuid() != 0)
        return;
    in_a_folder_of_all(dir);
    snprintf(lock, sizeof lock, "%s.lock", path);
    ck_assert_int_eq(shared_find(path, &all, "/mnt", &status, why, sizeof why), SHARED_FIRST);
    ck_assert_int_eq(shared_listen(path), 0);
    ck_assert_int_eq(as_nobody(is_kept_out), 0);
    ck_assert_int_eq(chmod(path, 0777), 0); /* the process must check users without the file's mode */
    ck_assert_int_eq(as_nobody(ask_as_root_does), 0);
    ck_assert_int_eq(as_nobody(trusts_no_root), 0);
    answer = 0;
    ck_assert_int_eq(join(), SHARED_JOINED);
    shared_end(path);
    unlink(lock);
    rmdir(dir);
}
END_TEST

/* Another user's process that listens at root's path does not even get the request. */
START_TEST(another_user_listens_in_vain)
{
    char dir[] = "/tmp/kiln-shared.XXXXXX", byte;
    int told[2];

    if (geteuid() != 0)
        return;
    in_a_folder_of_all(dir);
    ck_assert_int_eq(pipe(told), 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        struct sockaddr_un a = address();
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        if (setresuid(NOBODY, NOBODY, NOBODY) || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 1) ||
            write(told[1], "x", 1) != 1)
            _exit(99);
        _exit(recv(accept(fd, NULL, NULL), &byte, 1, 0) == 0 ? 0 : 1);
    }
    close(told[1]); /* or a child that has failed would not end the wait */
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
    ck_assert_int_eq(join(), SHARED_FAILED);
    ck_assert_str_eq(why, "the socket is not root's");
    ck_assert_int_eq(test_child_status(pid), 0);
    close(told[0]);
    unlink(path);
    rmdir(dir);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("shared");
    TCase *t = tcase_create("shared");

    tcase_add_test(t, what_is_sent_is_what_comes);
    tcase_add_test(t, each_option_of_a_mount_is_sent);
    tcase_add_test(t, each_option_is_described);
    tcase_add_test(t, what_has_no_room_is_not_sent);
    tcase_add_test(t, a_packet_that_is_none_is_refused);
    tcase_add_test(t, one_listens_and_the_next_joins);
    tcase_add_test(t, another_user_asks_in_vain);
    tcase_add_test(t, another_user_listens_in_vain);
    tcase_set_timeout(t, 120);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
