/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The verbs that ask kilnd one question and show the answer. */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/kiln.h"

/* ---- create ---------------------------------------------------------------------------------- */

/* Reads the number of "replica N" and the like, 0 to 1000. Returns -1 for any other text. */
static int
small_number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    return *text && !*end && n >= 0 && n <= 1000 ? (int)n : -1;
}

static int
ask_and_show(const char *what, json_t *args, int (*show)(const json_t *answer))
{
    json_t *answer;
    int status = ask(what, args, &answer);

    if (status)
        return status;
    status = kiln_options.is_json ? show_json(answer) : show(answer);
    json_decref(answer);
    return status;
}

/* Asks the user at a terminal. Returns true without a question in a script or with --yes. */
static bool
is_meant(const char *question, const char *name)
{
    char answer[16] = "";

    if (kiln_options.is_yes || !isatty(STDIN_FILENO))
        return true;
    fprintf(stderr, question, name);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* The largest redundancy that divides the stripe well, as gluster chooses: at most a third of the bricks, at
 * least 1. */
static int
default_redundancy(int bricks)
{
    return bricks >= 6 ? bricks / 3 : 1;
}

/* Takes "disperse N", "disperse-data K" and "redundancy R" from the words at `*at`, and moves `*at` on.
 * Returns 0 or an exit status; *set and *redundancy stay 0 without such words. */
static int
parse_dispersed_shape(const struct verb *v, int argc, char **argv, int *at, int *set, int *redundancy)
{
    int data = 0;

    while (*at + 1 < argc && (strcmp(argv[*at], "disperse") == 0 || strcmp(argv[*at], "disperse-data") == 0 ||
                              strcmp(argv[*at], "redundancy") == 0)) {
        int n = small_number(argv[*at + 1]);

        if (n <= 0)
            return usage(v, "%s %s: expected a number", argv[*at], argv[*at + 1]);
        *(argv[*at][0] == 'r' ? redundancy : argv[*at][8] ? &data : set) = n;
        *at += 2;
    }
    if (data && *set && *redundancy && data + *redundancy != *set)
        return usage(v, "disperse %d is not disperse-data %d and redundancy %d", *set, data, *redundancy);
    if (data && !*set && !*redundancy)
        return usage(v, "disperse-data %d: expected also redundancy R or disperse N", data);
    if (data)
        *set = *set ? *set : data + *redundancy;
    if (data)
        *redundancy = *set - data;
    if (*redundancy && !*set)
        return usage(v, "redundancy %d: expected also disperse N", *redundancy);
    if (*set && !*redundancy)
        *redundancy = default_redundancy(*set);
    return 0;
}

/* Takes "replica N" and "arbiter N" from the words at `*at`, and moves `*at` on. Returns 0 or an exit
 * status. */
static int
parse_shape(const struct verb *v, int argc, char **argv, int *at, int *replica, int *arbiter)
{
    while (*at + 1 < argc && (strcmp(argv[*at], "replica") == 0 || strcmp(argv[*at], "arbiter") == 0)) {
        int n = small_number(argv[*at + 1]);

        if (n < 0)
            return usage(v, "%s %s: expected a number", argv[*at], argv[*at + 1]);
        *(argv[*at][0] == 'r' ? replica : arbiter) = n;
        *at += 2;
    }
    return 0;
}

/* Whether a number or a size belongs behind this word of "create" and "add-brick". */
static bool
has_a_number(const char *word)
{
    static const char *const words[] = {"replica", "arbiter", "disperse", "disperse-data", "redundancy",
                                        "sets",    "size"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0)
            return true;
    }
    return false;
}

/* Returns the bricks from word `at` on. NULL: parse_bricks() has printed an error. */
static json_t *
parse_bricks(const struct verb *v, int argc, char **argv, int at)
{
    json_t *bricks = json_array();

    if (at >= argc)
        (void)usage(v, "expected a brick, [HOST:]/PATH");
    for (int i = at; i < argc; i++) {
        if (strchr(argv[i], '/')) {
            json_array_append_new(bricks, json_string(argv[i]));
            continue;
        }
        if (strcmp(argv[i], "force") == 0)
            (void)usage(v, "%s takes no word force: a folder that the verb refuses stays refused", v->name);
        else if (has_a_number(argv[i]) && i + 1 == argc)
            (void)usage(v, "%s: expected a number behind the word", argv[i]);
        else if (has_a_number(argv[i]))
            (void)usage(v, "%s: expected %s the bricks", argv[i],
                        strcmp(argv[i], "size") == 0 ? "after" : "before");
        else
            (void)usage(v, "'%s': expected a brick, [HOST:]/PATH", argv[i]);
        json_decref(bricks);
        return NULL;
    }
    if (at < argc)
        return bricks;
    json_decref(bricks);
    return NULL;
}

int
volume_create(const struct verb *v, int argc, char **argv)
{
    int replica = 1, arbiter = 0, redundancy = 0, set = 0, at = 1, sets = 0;
    int status = parse_dispersed_shape(v, argc, argv, &at, &set, &redundancy);
    if (!status && !set)
        status = parse_shape(v, argc, argv, &at, &replica, &arbiter);
    const char *size = argc > 2 && strcmp(argv[argc - 2], "size") == 0 ? argv[argc - 1] : NULL;
    const int end = size ? argc - 2 : argc;

    if (!status && at + 2 == end && strcmp(argv[at], "sets") == 0) {
        sets = small_number(argv[at + 1]);
        if (sets < 1)
            return usage(v, "sets %s: expected a number", argv[at + 1]);
        at = end;
    }
    json_t *bricks = status ? NULL : at == end ? json_array() : parse_bricks(v, end, argv, at);
    if (!bricks)
        return KILN_USAGE;
    return ask_and_say("volume-create",
                       json_pack("{ss si si si si so ss*}", "name", argv[0], "replica", set ? set : replica,
                                 "arbiter", arbiter, "redundancy", redundancy, "sets", sets, "bricks",
                                 bricks, "size", size),
                       "volume %s is created; start it: kiln volume start %s", argv[0], argv[0]);
}

/* ---- bricks come and go ---------------------------------------------------------------------- */

/* Returns the number of words without `word` at the end: gluster has the word, and Kiln ignores the word. */
static int
without_word(int argc, char **argv, const char *word)
{
    return argc > 1 && strcmp(argv[argc - 1], word) == 0 ? argc - 1 : argc;
}

int
cli_add_brick(const struct verb *v, int argc, char **argv)
{
    int replica = 0, arbiter = 0, at = 1;
    int status = parse_shape(v, argc, argv, &at, &replica, &arbiter);
    json_t *bricks = status ? NULL : parse_bricks(v, without_word(argc, argv, "force"), argv, at);

    if (!bricks)
        return KILN_USAGE;
    return ask_and_say(
        "volume-add-brick",
        json_pack("{ss si si so}", "name", argv[0], "replica", replica, "arbiter", arbiter, "bricks", bricks),
        replica ? "volume %s has these bricks; see: kiln volume info %s"
                : "volume %s has these bricks; folders made from now on use them. To move files there: kiln "
                  "volume rebalance %s start",
        argv[0], argv[0]);
}

/* remove-brick NAME BRICK... start|status|stop|commit: the files of the bricks are moved first. */
static int
show_task(const char *what, json_t *args)
{
    json_t *answer;
    int status = ask(what, args, &answer);

    status = status ? status : show_rebalance(answer);
    json_decref(answer);
    return status;
}

static int
drain(const struct verb *v, int argc, char **argv)
{
    const char *what = argv[argc - 1];
    json_t *bricks = parse_bricks(v, argc - 1, argv, 1);

    if (!bricks)
        return KILN_USAGE;
    if (strcmp(what, "commit") == 0)
        return ask_and_say("volume-remove-brick",
                           json_pack("{ss sb so}", "name", argv[0], "drained", 1, "bricks", bricks),
                           "volume %s is without these bricks; their folders stay as they are", argv[0]);
    json_t *args = json_pack("{ss ss so}", "name", argv[0], "what", what, "bricks", bricks);
    if (strcmp(what, "status") == 0)
        return show_task("volume-drain", args);
    if (strcmp(what, "start") == 0)
        return ask_and_say(
            "volume-drain", args,
            "volume %s: the files of these bricks are being moved; see: kiln volume remove-brick %s "
            "BRICK... status; at the end: the same with commit",
            argv[0], argv[0]);
    return ask_and_say("volume-drain", args,
                       "volume %s: these bricks stay; kiln volume rebalance %s start moves files back",
                       argv[0], argv[0]);
}

static bool
is_word_of_drain(const char *word)
{
    return strcmp(word, "start") == 0 || strcmp(word, "status") == 0 || strcmp(word, "stop") == 0 ||
           strcmp(word, "commit") == 0;
}

int
cli_remove_brick(const struct verb *v, int argc, char **argv)
{
    int replica = 0, arbiter = 0, at = 1;

    if (is_word_of_drain(argv[argc - 1]) && strcmp(argv[1], "replica") != 0)
        return drain(v, argc, argv);
    argc = without_word(without_word(argc, argv, "force"), argv, "commit");
    int status = parse_shape(v, argc, argv, &at, &replica, &arbiter);
    if (arbiter)
        return usage(v, "arbiter: expected replica N and the bricks");
    json_t *bricks = status ? NULL : parse_bricks(v, argc, argv, at);

    if (!bricks)
        return KILN_USAGE;
    if (replica > 0 && !is_meant("Volume %s will keep fewer copies of each file. Remove? (y/n) ", argv[0])) {
        json_decref(bricks);
        return KILN_REFUSED;
    }
    return ask_and_say("volume-remove-brick",
                       json_pack("{ss si so}", "name", argv[0], "replica", replica, "bricks", bricks),
                       "volume %s is without these bricks; their folders stay as they are", argv[0]);
}

int
volume_rebalance(const struct verb *v, int argc, char **argv)
{
    bool layouts = argc > 2 && strcmp(argv[1], "fix-layout") == 0;
    const char *what = argv[layouts ? 2 : 1];

    argc = without_word(argc, argv, "force");
    if (argc != (layouts ? 3 : 2))
        return usage(v, "expected [fix-layout] start, status or stop");
    json_t *args = json_pack("{ss ss sb}", "name", argv[0], "what", what, "layouts", layouts);
    if (strcmp(what, "status") == 0)
        return show_task("volume-rebalance", args);
    return ask_and_say("volume-rebalance", args,
                       strcmp(what, "stop") == 0
                           ? "volume %s: the rebalance is stopped; kiln volume rebalance %s start "
                             "goes on with it"
                           : "volume %s is being rebalanced; see: kiln volume rebalance %s status",
                       argv[0], argv[0]);
}

static int
replace(const char *name, const char *from, const char *to)
{
    return ask_and_say("volume-replace-brick",
                       json_pack("{ss ss ss}", "name", name, "from", from, "to", to),
                       "volume %s: %s is a new brick, and is healed; see: kiln volume heal %s info", name, to,
                       name);
}

int
volume_replace_brick(const struct verb *v, int argc, char **argv)
{
    argc = without_word(without_word(argc, argv, "force"), argv, "commit");
    if (argc > 3)
        return usage(v, "'%s': expected commit force, or nothing", argv[3]);
    if (argc < 3)
        return usage(v, "replace-brick: an argument is missing");
    return replace(argv[0], argv[1], argv[2]);
}

int
volume_reset_brick(const struct verb *v, int argc, char **argv)
{
    int words = without_word(argc, argv, "force");

    if (strcmp(argv[words - 1], "start") == 0 && words == 3)
        return ask_and_say("volume-reset-brick", json_pack("{ss ss}", "name", argv[0], "brick", argv[1]),
                           "volume %s: %s is not served now; when its folder is new: kiln volume reset-brick "
                           "%s %s %s commit",
                           argv[0], argv[1], argv[0], argv[1], argv[1]);
    if (strcmp(argv[words - 1], "commit") != 0 || words != 4)
        return usage(v, "expected BRICK start, or BRICK BRICK commit");
    if (strcmp(argv[1], argv[2]) != 0)
        return usage(v, "%s and %s: expected the same brick; another one: replace-brick", argv[1], argv[2]);
    return replace(argv[0], argv[1], argv[2]);
}

/* ---- start, stop, delete --------------------------------------------------------------------- */

int
volume_start(const struct verb *v, int argc, char **argv)
{
    bool is_forced = argc > 1 && strcmp(argv[1], "force") == 0;

    if (argc > 1 && !is_forced)
        return usage(v, "'%s': expected force, or nothing", argv[1]);
    json_t *answer;
    int status = ask("volume-start", json_pack("{ss sb}", "name", argv[0], "force", (int)is_forced), &answer);

    if (status)
        return status;
    const char *without = json_string_value(json_object_get(answer, "without"));

    if (kiln_options.is_json)
        status = show_json(answer);
    else if (without)
        printf("volume %s is started, but not all of its bricks run: %s\n"
               "a lost folder is replaced by: kiln volume reset-brick %s BRICK start\n",
               argv[0], without, argv[0]);
    else
        printf("volume %s is started; mount it: kiln mount %s DIR\n", argv[0], argv[0]);
    json_decref(answer);
    return status;
}

static int
show_stopped(const json_t *answer)
{
    const char *name = json_string_value(json_object_get(answer, "name"));
    long long clients = json_integer_value(json_object_get(answer, "clients"));

    name = name ? name : "-";
    printf("volume %s is stopped\n", name);
    if (clients > 0)
        printf("%lld client%s connected; calls there fail until: kiln start %s\n", clients,
               clients == 1 ? " was" : "s were", name);
    return KILN_DONE;
}

int
volume_stop(const struct verb *v, int argc, char **argv)
{
    (void)v;
    (void)argc;
    if (!is_meant("Clients of %s will lose it. Stop? (y/n) ", argv[0]))
        return KILN_REFUSED;
    return ask_and_show("volume-stop", json_pack("{ss}", "name", argv[0]), show_stopped);
}

int
volume_delete(const struct verb *v, int argc, char **argv)
{
    (void)v;
    (void)argc;
    if (!is_meant("Volume %s will be forgotten; its bricks' folders stay. Delete? (y/n) ", argv[0]))
        return KILN_REFUSED;
    return ask_and_say("volume-delete", json_pack("{ss}", "name", argv[0]),
                       "volume %s is deleted; its bricks' folders stay as they are", argv[0]);
}

/* ---- info, list, status ---------------------------------------------------------------------- */

/* Makes the arguments for a volume's name. "all" or no name means every volume. */
static json_t *
name_or_all(int argc, char **argv)
{
    return argc > 0 && strcmp(argv[0], "all") != 0 ? json_pack("{ss}", "name", argv[0]) : json_object();
}

int
volume_info(const struct verb *v, int argc, char **argv)
{
    (void)v;
    return ask_and_show("volume-info", name_or_all(argc, argv), show_info);
}

int
volume_list(const struct verb *v, int argc, char **argv)
{
    (void)v;
    (void)argc;
    (void)argv;
    return ask_and_show("volume-list", json_object(), show_list);
}

/* A glusterd without multiplexing starts several kilnds, and this command asks only the kilnd of one socket
 * (glusterfsd/questions.h). */
static void
name_other_daemons(void)
{
    char pattern[4200];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s.[0-9]*", kiln_options.socket);
    if (glob(pattern, 0, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        printf("Another kilnd: kiln --socket %s status\n", found.gl_pathv[i]);
    globfree(&found);
}

int
volume_status(const struct verb *v, int argc, char **argv)
{
    (void)v;
    int status = ask_and_show("volume-status", name_or_all(argc, argv), show_status);

    if (!status && !kiln_options.is_json)
        name_other_daemons();
    return status;
}

static int
heal_split_brain(const struct verb *v, int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    bool is_brick = strcmp(how, "source-brick") == 0;
    const char *brick = is_brick && argc > 3 ? argv[3] : NULL;
    const char *file = !is_brick && argc > 3 ? argv[3] : argc > 4 ? argv[4] : NULL;

    if ((strcmp(how, "bigger-file") != 0 && strcmp(how, "latest-mtime") != 0 && !is_brick) || argc < 4 ||
        argc > (is_brick ? 5 : 4))
        return usage(v,
                     "expected: split-brain bigger-file FILE, split-brain latest-mtime FILE, or split-brain "
                     "source-brick HOST:BRICK [FILE]");
    json_t *args =
        json_pack("{ss ss ss}", "name", argv[0], "what", "split-brain", "how", how);
    if (brick)
        json_object_set_new(args, "brick", json_string(brick));
    if (file)
        json_object_set_new(args, "file", json_string(file));
    return ask_and_show("volume-heal", args, show_resolved);
}

int
volume_heal(const struct verb *v, int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "index", *more = argc > 2 ? argv[2] : "";

    if (strcmp(what, "split-brain") == 0)
        return heal_split_brain(v, argc, argv);
    if (argc > 3)
        return usage(v, "'%s' is one argument too many", argv[3]);
    if (*more && strcmp(what, "info") != 0)
        return usage(v, "'%s' is one argument too many", more);
    json_t *args = json_pack("{ss ss}", "name", argv[0], "what", what);

    if (strcmp(what, "index") == 0)
        return ask_and_say("volume-heal", args,
                           "volume %s: the self-heal daemon looks; see: kiln volume heal %s info", argv[0],
                           argv[0]);
    if (strcmp(what, "full") == 0)
        return ask_and_show("volume-heal", args, show_full_heal);
    if (strcmp(what, "statistics") == 0)
        return ask_and_show("volume-heal", args, show_heal_statistics);
    if (strcmp(what, "info") != 0) {
        json_decref(args);
        return usage(v, "'%s': expected full, info, statistics or split-brain", what);
    }
    if (!*more)
        return ask_and_show("volume-heal", args, show_heal);
    if (strcmp(more, "summary") == 0)
        return ask_and_show("volume-heal", args, show_heal_summary);
    if (strcmp(more, "split-brain") == 0)
        return ask_and_show("volume-heal", args, show_split_brain);
    json_decref(args);
    return usage(v, "'%s': expected summary or split-brain", more);
}

int
volume_check(const struct verb *v, int argc, char **argv)
{
    json_t *answer;
    int status = ask("volume-check", json_pack("{ss}", "name", argv[0]), &answer);

    (void)v;
    (void)argc;
    if (status)
        return status;
    status = show_check(answer);
    json_decref(answer);
    return status;
}

/* ---- clear-locks ----------------------------------------------------------------------------- */

/* Prints "No locks cleared." once if no brick cleared a lock. Returns KILN_REFUSED if a brick failed. */
static int
show_cleared(const json_t *answer)
{
    static const char none[] = "No locks cleared.";
    const json_t *brick;
    unsigned cleared = 0, failed = 0;
    size_t i;

    json_array_foreach(json_object_get(answer, "bricks"), i, brick)
    {
        const char *text = json_string_value(json_object_get(brick, "cleared"));
        const char *error = json_string_value(json_object_get(brick, "error"));

        if (error)
            fprintf(stderr, "kiln: %s: %s\n", json_string_value(json_object_get(brick, "path")), error);
        else if (text && strcmp(text, none) != 0)
            printf("%s\n", text);
        failed += error != NULL;
        cleared += text && strcmp(text, none) != 0;
    }
    if (!cleared)
        printf("%s\n", none);
    return failed ? KILN_REFUSED : KILN_DONE;
}

static bool
is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* NAME PATH kind blocked|granted|all inode|entry|posix [RANGE] */
int
volume_clear_locks(const struct verb *v, int argc, char **argv)
{
    if (argv[1][0] != '/')
        return usage(v, "'%s': expected a path from the volume's root, /...", argv[1]);
    if (strcmp(argv[2], "kind") != 0)
        return usage(v, "'%s': expected the word kind", argv[2]);
    if (!is_one_of(argv[3], "blocked", "granted", "all"))
        return usage(v, "'%s': expected blocked, granted or all", argv[3]);
    if (!is_one_of(argv[4], "inode", "entry", "posix"))
        return usage(v, "'%s': expected inode, entry or posix", argv[4]);
    return ask_and_show("volume-clear-locks",
                        json_pack("{ss ss ss ss ss*}", "name", argv[0], "path", argv[1], "kind", argv[4],
                                  "state", argv[3], "range", argc > 5 ? argv[5] : NULL),
                        show_cleared);
}

/* ---- profile, statedump ---------------------------------------------------------------------- */

static int
switch_profile(const char *name, const char *word)
{
    json_t *options = json_pack("{ss ss}", "diagnostics.latency-measurement", word,
                                "diagnostics.count-fop-hits", word);

    return ask_and_say("volume-set", json_pack("{ss so}", "name", name, "options", options),
                       "volume %s: profile is %s", name, word);
}

int
volume_profile(const struct verb *v, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "info";

    if (strcmp(word, "start") == 0)
        return switch_profile(argv[0], "on");
    if (strcmp(word, "stop") == 0)
        return switch_profile(argv[0], "off");
    if (strcmp(word, "info") != 0 && strcmp(word, "slow") != 0)
        return usage(v, "'%s': expected start, stop, info or slow", word);
    return ask_and_show("volume-profile", json_pack("{ss}", "name", argv[0]),
                        *word == 's' ? show_slow : show_profile);
}

static int
show_dump(const json_t *answer)
{
    const char *file = json_string_value(json_object_get(answer, "file"));

    printf("%s\n", file ? file : "-");
    return KILN_DONE;
}

int
statedump(const struct verb *v, int argc, char **argv)
{
    (void)v;
    (void)argc;
    (void)argv;
    return ask_and_show("statedump", json_object(), show_dump);
}

/* ---- limits ---------------------------------------------------------------------------------- */

int
cli_limit(const struct verb *v, int argc, char **argv)
{
    json_t *args = json_pack("{ss ss}", "name", argv[0], "size", argv[1]);

    (void)v;
    (void)argc;
    if (strcmp(argv[1], "none") == 0)
        return ask_and_say("volume-limit", args, "volume %s has no limit", argv[0]);
    return ask_and_say("volume-limit", args, "volume %s has the limit %s; see: kiln volume status %s",
                       argv[0], argv[1], argv[0]);
}

/* NAME list | NAME set PATH SIZE | NAME remove PATH */
int
volume_quota(const struct verb *v, int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "list";
    json_t *args = json_pack("{ss ss ss* ss*}", "name", argv[0], "what", what, "path",
                             argc > 2 ? argv[2] : NULL, "size", argc > 3 ? argv[3] : NULL);

    if (strcmp(what, "list") == 0 && argc <= 2)
        return ask_and_show("volume-quota", args, show_quota);
    if (strcmp(what, "set") == 0 && argc == 4)
        return ask_and_say("volume-quota", args, "volume %s: %s has the limit %s", argv[0], argv[2], argv[3]);
    if (strcmp(what, "remove") == 0 && argc == 3)
        return ask_and_say("volume-quota", args, "volume %s: %s has no limit", argv[0], argv[2]);
    json_decref(args);
    if (strcmp(what, "list") == 0 || strcmp(what, "set") == 0 || strcmp(what, "remove") == 0)
        return usage(v, "quota %s: wrong number of arguments", what);
    return usage(v, "quota: '%.100s' is not known", what);
}

/* ---- options --------------------------------------------------------------------------------- */

int
volume_set(const struct verb *v, int argc, char **argv)
{
    json_t *options = json_object();
    bool is_forced = strcmp(argv[argc - 1], "--force") == 0;

    argc -= is_forced;
    if (argc % 2 == 0 || argc < 3) {
        json_decref(options);
        return usage(v, "'%s' has no value", argv[argc - 1]);
    }
    bool is_process = strcmp(argv[0], "all") == 0; /* no volume has this name */
    for (int i = 1; i + 1 < argc; i += 2) {
        bool is_tls = !is_process && strcmp(argv[i], "tls") == 0; /* stands for the options of both sides */

        json_object_set_new(options, is_tls ? "server.ssl" : argv[i], json_string(argv[i + 1]));
        if (is_tls)
            json_object_set_new(options, "client.ssl", json_string(argv[i + 1]));
    }
    if (is_process)
        return ask_and_say("pools", json_pack("{so}", "set", options), "memory pools of kilnd: set");
    return ask_and_say("volume-set", json_pack("{ss so sb}", "name", argv[0], "options", options, "force",
                                               (int)is_forced),
                       "volume %s: set", argv[0]);
}

int
volume_get(const struct verb *v, int argc, char **argv)
{
    (void)v;
    (void)argc;
    return ask_and_show("volume-get", json_pack("{ss ss}", "name", argv[0], "key", argv[1]), show_options);
}

int
volume_reset(const struct verb *v, int argc, char **argv)
{
    (void)v;
    return ask_and_say("volume-reset",
                       json_pack("{ss ss}", "name", argv[0], "key", argc > 1 ? argv[1] : "all"),
                       "volume %s: reset", argv[0]);
}
