/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Scripts for shells, from the table of verbs. A script asks kilnd for the names of volumes at completion. */
#include <stdio.h>
#include <string.h>

#include "cli/kiln.h"

static void
put_words(void)
{
    for (const struct verb *v = verbs; v->name; v++)
        printf("%s ", v->name);
    printf("help");
}

/* Verbs whose first argument is a volume, as alternatives of a case. */
static void
put_volume_verbs(void)
{
    bool is_first = true;

    for (const struct verb *v = verbs; v->name; v++) {
        if (strncmp(v->args, "NAME", 4) != 0 && strncmp(v->args, "[NAME]", 6) != 0)
            continue;
        if (strcmp(v->name, "create") == 0)
            continue;
        printf("%s%s", is_first ? "" : "|", v->name);
        is_first = false;
    }
}

/* The words that users type literally after the verb: "[start|stop|info]", "[--once]". */
static void
put_words_of(const struct verb *v)
{
    static const char ends[] = " []|.";
    bool is_first = true;

    for (const char *at = v->args; *at; at += strspn(at, ends)) {
        size_t len = strcspn(at, ends);

        if (len > 0 && strspn(at, "abcdefghijklmnopqrstuvwxyz-") == len) {
            printf("%s%.*s", is_first ? "" : " ", (int)len, at);
            is_first = false;
        }
        at += len;
    }
}

static bool
takes_files(const struct verb *v)
{
    static const char *const files[] = {"FILE", "DIR", "PATH", "BRICK"};
    bool takes = false;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        takes |= strstr(v->args, files[i]) != NULL;
    return takes;
}

/* Prints a row of a shell's case for each verb: `before`, the verb, `between`, the verb's words, `files` if
 * the verb takes files, `after`. The caller prints the rows of verbs with keys of options. */
static void
put_rows(const char *before, const char *between, const char *files, const char *after)
{
    for (const struct verb *v = verbs; v->name; v++) {
        if (!strpbrk(v->args, "abcdefghijklmnopqrstuvwxyz") || strstr(v->args, "KEY"))
            continue;
        printf("%s%s%s", before, v->name, between);
        put_words_of(v);
        printf("%s%s", takes_files(v) ? files : "", after);
    }
}

#define KEYS "kiln get \"$volume\" all 2>/dev/null | awk 'NR > 1 { print $1 }'"

static void
put_bash(void)
{
    printf("_kiln() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} i=1 volume\n"
           "    local -a words=()\n"
           "    while [[ ${COMP_WORDS[i]} == -* && $i -lt $COMP_CWORD ]]; do i=$((i + 1)); done\n"
           "    [[ ${COMP_WORDS[i]} != volume || $i -ge $COMP_CWORD ]] || i=$((i + 1))\n"
           "    volume=${COMP_WORDS[i + 1]-}\n"
           "    if [[ $i -ge $COMP_CWORD ]]; then\n"
           "        words=(volume ");
    put_words();
    printf(")\n"
           "    elif [[ $((i + 1)) -eq $COMP_CWORD && ${COMP_WORDS[i]} == @(");
    put_volume_verbs();
    printf(") ]]; then\n"
           "        mapfile -t words < <(kiln list 2>/dev/null)\n"
           "    else\n"
           "        case ${COMP_WORDS[i]} in\n"
           "        set) (((COMP_CWORD - i) %% 2)) || mapfile -t words < <(" KEYS ") ;;\n"
           "        get|reset) mapfile -t words < <(" KEYS "; echo all) ;;\n");
    put_rows("        ", ") words=(", "", ") ;;\n");
    printf("        help) words=(");
    put_words();
    printf(") ;;\n"
           "        esac\n"
           "    fi\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"${words[*]}\" -- \"$word\")\n"
           "}\n"
           "complete -o default -F _kiln kiln\n");
}

/* The script works as a file of zsh's $fpath, which zsh runs as the function at the first use, and when a
 * user sources the script. */
static void
put_zsh(void)
{
    printf("#compdef kiln\n"
           "_kiln() {\n"
           "    local i=2 volume\n"
           "    while (( i < CURRENT )) && [[ $words[i] == -* ]]; do (( i++ )); done\n"
           "    (( i < CURRENT )) && [[ $words[i] == volume ]] && (( i++ ))\n"
           "    if (( i == CURRENT )); then\n"
           "        compadd -- volume ");
    put_words();
    printf("\n"
           "    elif (( i + 1 == CURRENT )) && [[ $words[i] == (");
    put_volume_verbs();
    printf(") ]]; then\n"
           "        compadd -- ${(f)\"$(kiln list 2>/dev/null)\"}\n"
           "    else\n"
           "        volume=$words[i+1]\n"
           "        case $words[i] in\n"
           "        (set) (( (CURRENT - i) %% 2 )) || compadd -- ${(f)\"$(" KEYS ")\"} ;;\n"
           "        (get|reset) compadd -- ${(f)\"$(" KEYS ")\"} all ;;\n");
    put_rows("        (", ") compadd -- ", "; _files", " ;;\n");
    printf("        (help) compadd -- ");
    put_words();
    printf(" ;;\n"
           "        (*) _files ;;\n"
           "        esac\n"
           "    fi\n"
           "}\n"
           "if [[ $funcstack[1] == _kiln ]]; then _kiln \"$@\"; else compdef _kiln kiln; fi\n");
}

int
completion(const struct verb *v, int argc, char **argv)
{
    (void)argc;
    if (strcmp(argv[0], "bash") == 0)
        put_bash();
    else if (strcmp(argv[0], "zsh") == 0)
        put_zsh();
    else
        return usage(v, "'%s': expected bash or zsh", argv[0]);
    return KILN_DONE;
}
