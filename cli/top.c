/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln top: asks kilnd for the rates of a second and shows the rates, again and again. */
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/exchange.h"
#include "cli/kiln.h"
#include "cli/top.h"

enum { PERIOD_MS = 1000, LINE_BYTES = 8192, WIDTH_MIN = 80, WIDTH_UNBUILT = 160, SLOWEST_ONCE = 10 };

struct screen {
    unsigned view, sorted_by;
    bool is_reversed, is_over;
    bool has_help;   /* the keys are shown in place of the figures */
    bool is_typing;  /* keys go to the filter */
    char filter[64]; /* text that a row must contain to be shown; "": no filter */
};

/* ---- once ------------------------------------------------------------------------------------ */

static void
print_view(const struct top_view *view, const json_t *rates, int width)
{
    json_t *rows = top_rows(view, rates, view->sorted_by, false), *sum = top_sum(view, rows), *row;
    char line[LINE_BYTES];
    size_t i;

    top_line(view, NULL, view->sorted_by, width, line, sizeof line);
    printf("\n%s\n", line);
    if (sum) {
        top_line(view, sum, view->sorted_by, width, line, sizeof line);
        printf("%s\n", line);
    }
    json_array_foreach(rows, i, row)
    {
        if (view == &top_views[TOP_SLOW] && i == SLOWEST_ONCE)
            break;
        top_line(view, row, view->sorted_by, width, line, sizeof line);
        printf("%s\n", line);
    }
    json_decref(sum);
    json_decref(rows);
}

static void
print_rates(const json_t *rates)
{
    char line[LINE_BYTES];

    top_summary(rates, line, sizeof line);
    printf("%s\n", line);
    static const unsigned order[TOP_VIEWS] = {TOP_HOSTS,   TOP_VOLUMES, TOP_BRICKS, TOP_FOPS,
                                              TOP_CLIENTS, TOP_SLOW,    TOP_UNBUILT};
    for (unsigned n = 0; n < TOP_VIEWS; n++) {
        unsigned i = order[n];

        if (i == TOP_HOSTS && !json_object_get(rates, "hosts"))
            continue;
        if (i != TOP_UNBUILT || strstr(line, "NOT BUILT")) /* most volumes use no unbuilt features */
            print_view(&top_views[i], rates, i == TOP_UNBUILT || i == TOP_HOSTS ? WIDTH_UNBUILT : WIDTH_MIN);
    }
}

/* Prints the rates of one second. With --json prints kilnd's bytes unchanged. */
static int
top_once(void)
{
    json_t *rates = NULL;
    struct exchange x;
    int err = top_ask(&x, PERIOD_MS), status = top_take(&x, err, kiln_options.is_json ? NULL : &rates, false);

    if (rates) {
        top_name_bricks(rates);
        print_rates(rates);
    }
    json_decref(rates);
    return status;
}

/* ---- the screen ------------------------------------------------------------------------------ */

static const char *const help_lines[] = { /* of at most 79 characters */
    "v  volumes: the sums of their bricks; the slowest percentile of a brick",
    "b  bricks, named VOLUME:FOLDER; wide screens show more columns",
    "f  operations of each brick",
    "c  clients of each brick",
    "w  the slowest calls of the last ten minutes, and where their time went",
    "m  machines: the hosts that share a store; others' clients, calls show there",
    "n  features that volumes ask for and that are not built",
    "",
    "/  show only rows with a text: type it, then Enter; Esc shows all rows again",
    "s  sort by the next column; r  reverse the order",
    "?  or h: this help; q  quit",
    "",
    "ops/s operations, p50 and p99 their durations, rd/s wr/s bytes,",
    "queue calls that wait for the disk, cli clients, lock locks held,",
    "wait locks waited for, cpu% of one processor. kiln(8) has more.",
};

static void
draw_line(int y, const char *line)
{
    mvaddnstr(y, 0, line, COLS);
}

static void
draw_help(void)
{
    for (size_t i = 0; i < sizeof help_lines / sizeof help_lines[0] && (int)i < LINES - 3; i++)
        draw_line((int)i + 2, help_lines[i]);
}

static void
draw_rows(const struct screen *s, const json_t *rows)
{
    const struct top_view *view = &top_views[s->view];
    json_t *sum = top_sum(view, rows);
    int y = 2;
    char line[LINE_BYTES];

    if (sum) {
        attron(A_BOLD);
        top_line(view, sum, s->sorted_by, COLS, line, sizeof line);
        draw_line(y++, line);
        attroff(A_BOLD);
    }
    json_decref(sum);
    for (size_t i = 0; i < json_array_size(rows) && y < LINES - 1; i++) {
        top_line(view, json_array_get(rows, i), s->sorted_by, COLS, line, sizeof line);
        draw_line(y++, line);
    }
}

static void
draw_footer(const struct screen *s, size_t count)
{
    char line[LINE_BYTES];

    if (s->is_typing)
        snprintf(line, sizeof line, "show rows with: %s_   (Enter; Esc: all rows)", s->filter);
    else
        snprintf(line, sizeof line,
                 "%s: %zu%s%s  v b f c w n views  / filter  s sort  r reverse  ? help  q quit",
                 top_views[s->view].name, count, *s->filter ? " with " : "", s->filter);
    draw_line(LINES - 1, line);
}

static void
draw(const struct screen *s, const json_t *rates)
{
    const struct top_view *view = &top_views[s->view];
    json_t *rows = top_filter(top_rows(view, rates, s->sorted_by, s->is_reversed), s->filter);
    char line[LINE_BYTES];

    erase();
    top_summary(rates, line, sizeof line);
    draw_line(0, line);
    top_line(view, NULL, s->sorted_by, COLS, line, sizeof line);
    attron(A_REVERSE);
    draw_line(1, s->has_help ? "keys" : line);
    attroff(A_REVERSE);
    if (s->has_help)
        draw_help();
    else
        draw_rows(s, rows);
    draw_footer(s, json_array_size(rows));
    refresh();
    json_decref(rows);
}

static void
switch_view(struct screen *s, unsigned view)
{
    s->view = view;
    s->sorted_by = top_views[view].sorted_by;
    s->is_reversed = false;
}

/* The key of each view, in the order of top_views. */
static const char view_keys[TOP_VIEWS + 1] = "bfcwnvm";

static void
sort_by_next(struct screen *s)
{
    const struct top_view *view = &top_views[s->view];

    do
        s->sorted_by = (s->sorted_by + 1) % view->column_count;
    while (!top_column_is_shown(view, s->sorted_by, COLS));
}

enum { KEY_ESCAPE = 27, KEY_DELETE = 127 };

/* Handles a key while the user types the filter's text. */
static void
type_key(struct screen *s, int key)
{
    size_t len = strlen(s->filter);

    if (key == KEY_ESCAPE)
        s->filter[0] = '\0';
    if (key == KEY_ESCAPE || key == '\n' || key == '\r' || key == KEY_ENTER)
        s->is_typing = false;
    else if ((key == KEY_BACKSPACE || key == KEY_DELETE || key == '\b') && len > 0)
        s->filter[len - 1] = '\0';
    else if (key > ' ' && key < KEY_DELETE && len + 1 < sizeof s->filter) {
        s->filter[len] = (char)key;
        s->filter[len + 1] = '\0';
    }
}

static void
take_key(struct screen *s, int key)
{
    if (s->is_typing) {
        type_key(s, key);
        return;
    }
    if (key != KEY_RESIZE && s->has_help) { /* any key ends the help */
        s->has_help = false;
        if (key != 'q')
            return;
    }
    switch (key) {
    case '?':
    case 'h':
        s->has_help = true;
        break;
    case '/':
        s->is_typing = true;
        break;
    case KEY_ESCAPE:
        s->filter[0] = '\0';
        break;
    case 'v':
    case 'b':
    case 'f':
    case 'c':
    case 'w':
    case 'n':
        switch_view(s, (unsigned)(strchr(view_keys, key) - view_keys));
        break;
    case 's':
        sort_by_next(s);
        break;
    case 'r':
        s->is_reversed = !s->is_reversed;
        break;
    case 'q':
        s->is_over = true;
        break;
    default: /* KEY_RESIZE too: the caller draws the screen anew after each key */
        break;
    }
}

/* Takes keys until the answer to the question in flight is whole, or the user quits. Returns the last result
 * of exchange_read(). */
static int
wait_for_figures(struct screen *s, const json_t *rates, struct exchange *x)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = x->fd, .events = POLLIN}};
    int came = 0;

    while (!came && !s->is_over) {
        if (poll(fds, 2, -1) > 0 && fds[1].revents)
            came = exchange_read(x);
        int key = getch(); /* also after a signal has interrupted poll(2): KEY_RESIZE */
        if (key == ERR)
            continue;
        take_key(s, key);
        if (!s->is_over)
            draw(s, rates);
    }
    return came;
}

/* Shows `rates` (since kilnd's start) first, then the rates of each second. Takes `rates` over. Returns 0, or
 * an exit status; the caller prints the error, because curses still owns the terminal here. */
static int
run_screen(struct screen *s, json_t *rates)
{
    int status = KILN_DONE;

    while (!status && !s->is_over) {
        struct exchange x;
        int err = top_ask(&x, PERIOD_MS);

        draw(s, rates);
        if (!err)
            err = wait_for_figures(s, rates, &x);
        if (s->is_over) {
            exchange_end(&x);
            break;
        }
        json_t *next;
        status = top_take(&x, err, &next, true);
        if (status)
            break;
        json_decref(rates);
        rates = next;
        top_name_bricks(rates);
    }
    json_decref(rates);
    return status;
}

static int
top_screen(void)
{
    struct screen s = {0};
    json_t *rates;
    struct exchange x;

    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return refuse(KILN_USAGE, "a terminal", "kiln top --once", "top wants a terminal");
    int err = top_ask(&x, 0), status = top_take(&x, err, &rates, false);
    if (status)
        return status;
    top_name_bricks(rates);
    switch_view(&s, 0);
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (!terminal) {
        json_decref(rates);
        return refuse(KILN_REFUSED, "a terminal that ncurses knows", "kiln top --once",
                      "the terminal (TERM) is not known");
    }
    cbreak();
    noecho();
    keypad(stdscr, true);
    set_escdelay(25);
    timeout(0); /* poll(2) waits */
    curs_set(0);
    status = run_screen(&s, rates);
    endwin();
    delscreen(terminal);
    return status ? refuse(status, NULL, NULL, "kilnd does not answer any more, or its answer has no figures")
                  : KILN_DONE;
}

int
top(const struct verb *v, int argc, char **argv)
{
    bool is_once = argc > 0 && strcmp(argv[0], "--once") == 0;

    if (argc > 0 && argv[0][0] != '-') /* gluster volume top NAME [open|read|...] */
        return refuse(KILN_REFUSED, "the load of bricks, operations and clients", "kiln top --once",
                      "top of files is not built");
    if (argc > is_once)
        return usage(v, "top: '%.100s' is not known", argv[is_once]);
    return argc > 0 || kiln_options.is_json ? top_once() : top_screen();
}
