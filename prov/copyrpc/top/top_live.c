/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Live view on the terminal: see top_live.h. */
#include "top/top_live.h"

#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "top/top_lines.h"
#include "top/top_waits.h"
#include "util/proc.h"

/** Orders of the lines; `s` selects the next one. */
enum top_order {
	TOP_BY_MESSAGES,
	TOP_BY_BYTES,
	TOP_BY_WAITS,
	TOP_BY_NUMBER, /* of the process, or row of the connection */
	TOP_ORDERS,
};

static const char *const top_order_names[TOP_ORDERS] = { "messages", "bytes", "waits", "number" };

/** A line of the screen: a process or a connection. */
struct top_item {
	const struct stats_view *view;
	const struct copyrpc_stats_peer *peer; /* NULL: the line is a process */
	struct top_rate rate;
	bool has_rate;
	uint32_t number;
};

struct top_screen {
	struct top_pages before, now;
	double seconds; /* interval that the user wants */
	double passed;  /* between the two reads */
	enum top_order order;
	int32_t pid;            /* process whose connections are shown; 0: all processes */
	uint32_t selected;      /* number of the selected item */
	struct top_item *items; /* of what is shown */
	size_t cnt;
	bool waits; /* waits are shown instead of items */
};

static double top_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- items ---- */

static double top_key(const struct top_item *item, enum top_order order)
{
	switch (order) {
	case TOP_BY_MESSAGES: return item->rate.tx_messages + item->rate.rx_messages;
	case TOP_BY_BYTES: return item->rate.tx_bytes + item->rate.rx_bytes;
	case TOP_BY_WAITS: return item->rate.waits;
	default: return 0;
	}
}

static int top_item_compare(const void *a, const void *b, void *order)
{
	const struct top_item *x = a, *y = b;
	double first = top_key(x, *(enum top_order *)order);
	double second = top_key(y, *(enum top_order *)order);

	if (first != second)
		return first < second ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void top_add_process(struct top_screen *screen, const struct stats_view *view)
{
	const struct stats_view *old = top_rate_page(&screen->before, view);
	struct top_item *item = &screen->items[screen->cnt++];

	*item = (struct top_item){ .view = view, .number = (uint32_t)view->page->pid };
	if (!old)
		return;

	struct copyrpc_stats_peer then = stats_view_sum_peers(old);
	struct copyrpc_stats_peer sum = stats_view_sum_peers(view);

	item->rate = top_rate(&then, &sum, screen->passed);
	item->has_rate = true;
}

static void top_add_peers(struct top_screen *screen, const struct stats_view *view)
{
	const struct stats_view *before = top_rate_page(&screen->before, view);

	for (uint32_t i = 1; i < stats_view_rows(view, COPYRPC_STATS_PEERS); i++) {
		const struct copyrpc_stats_peer *old = top_rate_peer(before, view, i);
		const struct copyrpc_stats_peer *peer =
			stats_view_row(view, COPYRPC_STATS_PEERS, i);
		struct top_item *item = &screen->items[screen->cnt];

		if (!peer)
			continue;
		*item = (struct top_item){ .view = view, .peer = peer, .number = i };
		item->has_rate = old != NULL;
		if (old)
			item->rate = top_rate(old, peer, screen->passed);
		screen->cnt++;
	}
}

/** Returns the process whose connections are shown, or NULL if it has gone. */
static const struct stats_view *top_shown(const struct top_screen *screen)
{
	for (size_t i = 0; i < screen->now.cnt; i++)
		if (screen->now.views[i].page->pid == screen->pid)
			return &screen->now.views[i];
	return NULL;
}

static int top_items(struct top_screen *screen)
{
	const struct stats_view *shown = top_shown(screen);
	size_t most = screen->pid ? COPYRPC_STATS_ROWS_MAX : screen->now.cnt;

	free(screen->items);
	screen->cnt = 0;
	screen->items = calloc(most + 1, sizeof(*screen->items));
	if (!screen->items)
		return -ENOMEM;
	if (shown)
		top_add_peers(screen, shown);
	for (size_t i = 0; i < screen->now.cnt && !screen->pid; i++)
		top_add_process(screen, &screen->now.views[i]);
	qsort_r(screen->items, screen->cnt, sizeof(*screen->items), top_item_compare,
		&screen->order);
	return 0;
}

/** Returns the position of the selected item; 0 if it has gone. */
static size_t top_position(const struct top_screen *screen)
{
	for (size_t i = 0; i < screen->cnt; i++)
		if (screen->items[i].number == screen->selected)
			return i;
	return 0;
}

static void top_move(struct top_screen *screen, int by)
{
	long to = (long)top_position(screen) + by;

	if (to >= (long)screen->cnt)
		to = (long)screen->cnt - 1;
	if (screen->cnt)
		screen->selected = screen->items[to < 0 ? 0 : to].number;
}

/* ---- screen ---- */

static const char *top_columns(const struct top_screen *screen)
{
	if (screen->waits)
		return "PROCESS, WAIT, PEER; CIRCLES; ENDS OF CHAINS";
	return screen->pid ? top_peer_columns : top_process_columns;
}

static void top_draw_head(const struct top_screen *screen)
{
	const struct stats_view *shown = top_shown(screen);
	char clock[16] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	move(0, 0);
	if (screen->waits)
		printw("copyrpc_top %s  waits of operations for peers", clock);
	else if (shown)
		printw("copyrpc_top %s  %s, pid %d, connections: %zu, by %s", clock,
		       shown->page->command, (int)screen->pid, screen->cnt,
		       top_order_names[screen->order]);
	else if (screen->pid)
		printw("copyrpc_top %s  process %d has ended", clock, (int)screen->pid);
	else
		printw("copyrpc_top %s  processes: %zu, by %s", clock, screen->cnt,
		       top_order_names[screen->order]);
	if (screen->now.refused)
		printw(", %zu pages of another version, or forged", screen->now.refused);
	attron(A_REVERSE);
	mvprintw(1, 0, "%-*.*s", COLS, COLS, top_columns(screen));
	attroff(A_REVERSE);
}

static void top_draw_item(const struct top_screen *screen, const struct top_item *item, int row)
{
	const struct top_rate *rate = item->has_rate ? &item->rate : NULL;
	bool selected = item->number == screen->items[top_position(screen)].number;
	char line[TOP_LINE_LEN];

	if (item->peer)
		top_peer_line(line, item->view, item->peer, rate);
	else
		top_process_line(line, item->view, rate);
	if (selected)
		attron(A_BOLD);
	mvaddnstr(row, 0, line, COLS);
	if (selected)
		attroff(A_BOLD);
}

/** Draws the waits of processes for one another, as copyrpc_top --waits prints them. */
static void top_draw_waits(const struct top_screen *screen)
{
	char *text = NULL, *line, *rest;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	top_waits_print(out, &screen->now, (uint64_t)(top_clock() * 1e9), util_proc_state);
	fclose(out);
	rest = text;
	for (int row = 2; row < LINES - 1 && (line = strsep(&rest, "\n")); row++)
		mvaddnstr(row, 0, line, COLS);
	free(text);
}

static void top_draw_items(const struct top_screen *screen)
{
	int rows = LINES - 3;
	size_t position = top_position(screen);
	size_t first = rows > 0 && position >= (size_t)rows ? position - (size_t)rows + 1 : 0;

	for (int row = 0; row < rows && first + (size_t)row < screen->cnt; row++)
		top_draw_item(screen, &screen->items[first + (size_t)row], row + 2);
	if (!screen->cnt && !screen->pid)
		mvaddnstr(2, 0, "No process of yours on this host uses copyrpc.", COLS);
}

/** Returns the line about keys. */
static const char *top_keys(const struct top_screen *screen)
{
	if (screen->waits)
		return "q quit   Esc processes";
	return screen->pid ? "q quit   Esc processes   w waits   s order   arrows select"
			   : "q quit   Enter connections   w waits   s order   arrows select";
}

static void top_draw(const struct top_screen *screen)
{
	erase();
	top_draw_head(screen);
	if (screen->waits)
		top_draw_waits(screen);
	else
		top_draw_items(screen);
	attron(A_DIM);
	mvaddnstr(LINES - 1, 0, top_keys(screen), COLS);
	attroff(A_DIM);
	refresh();
}

/** Does what a key says. Returns false if the user quits. */
static bool top_key_pressed(struct top_screen *screen, int key)
{
	int page = LINES > 4 ? LINES - 4 : 1;

	switch (key) {
	case 'q': return false;
	case 'w': screen->waits = true; break;
	case 's': screen->order = (screen->order + 1) % TOP_ORDERS; break;
	case KEY_UP:
	case 'k': top_move(screen, -1); break;
	case KEY_DOWN:
	case 'j': top_move(screen, 1); break;
	case KEY_PPAGE: top_move(screen, -page); break;
	case KEY_NPAGE: top_move(screen, page); break;
	case '\n':
	case KEY_ENTER:
		if (!screen->waits && !screen->pid && screen->cnt)
			screen->pid = screen->items[top_position(screen)].view->page->pid;
		break;
	case 27: /* Esc */
	case KEY_LEFT:
	case KEY_BACKSPACE:
		screen->pid = 0;
		screen->waits = false;
		break;
	default: break;
	}
	return true;
}

/* ---- loop ---- */

static int top_read(struct top_screen *screen)
{
	top_pages_free(&screen->before);
	screen->before = screen->now;
	return top_pages_read(&screen->now);
}

/** Handles keys until `end`. Returns 0, 1 if the user quits, or -errno. */
static int top_keys_until(struct top_screen *screen, double end)
{
	for (;;) {
		double left = end - top_clock();
		int key, ret;

		if (left <= 0)
			return 0;
		timeout((int)(left * 1000) + 1);
		key = getch();
		if (key == ERR)
			continue;
		if (!top_key_pressed(screen, key))
			return 1;
		ret = top_items(screen);
		if (ret)
			return ret;
		top_draw(screen);
	}
}

static int top_loop(struct top_screen *screen)
{
	double last = top_clock();
	int ret = top_read(screen);

	while (!ret) {
		ret = top_items(screen);
		if (ret)
			break;
		top_draw(screen);
		ret = top_keys_until(screen, last + screen->seconds);
		if (ret)
			break;

		double now = top_clock();

		ret = top_read(screen);
		screen->passed = now - last;
		last = now;
	}
	return ret > 0 ? 0 : ret;
}

int top_live(double seconds)
{
	struct top_screen screen = { .seconds = seconds, .passed = seconds };
	SCREEN *terminal = newterm(NULL, stdout, stdin);
	int ret;

	if (!terminal)
		return -ENOTTY;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	set_escdelay(50);
	ret = top_loop(&screen);
	endwin();
	delscreen(terminal);
	free(screen.items);
	top_pages_free(&screen.before);
	top_pages_free(&screen.now);
	return ret;
}
