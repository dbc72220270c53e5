/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a shared-memory link, and the values of its tuning constants.
 *
 * Two processes, pinned to different processors (--cpu A,B), connected by the device itself,
 * without any engine: a message is 32 bytes of batch metadata, 12 of header and the payload, as on
 * a real ring.
 *
 *   latency   one way (half a round trip): in-band words against posts only, metadata at a line's
 *             start or in its middle
 *   ahead     the same, by the distance that the writer clears ahead of the next metadata (-1:
 *   automatic)
 *   links     the same with n connected links, one active or all in turn
 *   poll      an idle poll with n connected links
 *   publish   write_imm alone; a stream of small batches
 *   wake      a reader that sleeps in poll(2); arm + disarm
 *   copy      large messages: through the ring, process_vm_readv, both processes half each, and a
 *             rendezvous get of the device
 *   attacked  messages of a peer while another one writes shared lines without end
 *
 * Prints a table, and with --json FILE the same as JSON lines. A pass runs every row of a section;
 * a value is the median of a pass's blocks, and the table has the best pass (the machine
 * undisturbed) and the median pass. --only SECTION, --quick.
 */
#include "shm_link_rows.h"

#include <poll.h>
#include <sys/resource.h>

#include "util/clock.h"
#include "util/param.h"

static const struct shm_tune tune_posts_only = { .per_poll = 16, .tick = 1 };

static bool wants(const char *section)
{
	return !rows_opt.only || !strcmp(rows_opt.only, section);
}

/* ---- latency ---- */

struct lat_arg {
	uint32_t len;
	bool mid_line; /* metadata is in the middle of a line */
	bool in_turn;  /* messages use every link in turn */
};

/* Sends a batch of an odd number of units, so that the next one begins in the middle of a line. */
static void shift_heads(struct side *s)
{
	uint32_t i;

	for (i = 0; i < s->cnt; i++)
		send_one(&s->conns[i], s->buf, 32);
	for (i = 0; i < s->cnt; i++)
		recv_one(s, s->buf);
}

static double job_latency(struct side *s, const void *p)
{
	const struct lat_arg *arg = p;
	double blocks[ROWS_BLOCKS];
	uint64_t start;
	uint32_t b, i, k = 0;

	if (arg->mid_line)
		shift_heads(s);
	for (b = 0; b < ROWS_BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < rows_opt.round; i++) {
			if (s->is_child) {
				send_one(recv_one(s, s->buf), s->buf, arg->len);
				continue;
			}
			send_one(&s->conns[k], s->buf, arg->len);
			recv_one(s, s->buf);
			if (arg->in_turn)
				k = k + 1 < s->cnt ? k + 1 : 0;
		}
		blocks[b] = (double)(util_clock_ns() - start) / rows_opt.round / 2;
	}
	return rows_median(blocks, ROWS_BLOCKS);
}

/* Measures the lower bound of the machine: a line for each direction, a word that grows. */
static double job_floor(struct side *s, const void *p)
{
	uint64_t *tx = (uint64_t *)(void *)s->conns[0].link->tx_base;
	uint64_t *rx = (uint64_t *)(void *)s->conns[0].link->rx_base;
	double blocks[ROWS_BLOCKS];
	uint64_t start, n = 0;
	uint32_t b, i;

	for (b = 0; b < ROWS_BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < rows_opt.round; i++) {
			n++;
			if (!s->is_child)
				__atomic_store_n(tx, n, __ATOMIC_RELEASE);
			while (__atomic_load_n(rx, __ATOMIC_ACQUIRE) != n)
				;
			if (s->is_child)
				__atomic_store_n(tx, n, __ATOMIC_RELEASE);
		}
		blocks[b] = (double)(util_clock_ns() - start) / rows_opt.round / 2;
	}
	return rows_median(blocks, ROWS_BLOCKS);
}

static struct lat_arg lat_args[64];

static void add_latency(const char *what, struct lat_arg arg, uint32_t cnt, uint64_t ring)
{
	static uint32_t used;
	struct row *r;
	int posts;

	lat_args[used] = arg;
	for (posts = 0; posts < 2; posts++) {
		r = rows_add(job_latency, cnt, ring, posts ? &tune_posts_only : NULL);
		r->arg = &lat_args[used];
		snprintf(r->name, sizeof(r->name), "%s, %s", what,
			 posts ? "posts only" : "in-band");
	}
	used++;
}

static void bench_latency(void)
{
	static const uint32_t lens[] = { 8, 32, 100, 256, 1000 };
	char name[64];
	uint32_t i;

	strcpy(rows_add(job_floor, 1, 4096, NULL)->name, "floor: one word, a line each way");
	for (i = 0; i < 2 * 5; i++) {
		snprintf(name, sizeof(name), "%u B, head %s", lens[i / 2],
			 i % 2 ? "mid-line" : "at line start");
		add_latency(name, (struct lat_arg){ .len = lens[i / 2], .mid_line = i % 2 }, 1,
			    1 << 20);
	}
	rows_run("latency");
}

static double job_stream(struct side *s, const void *p)
{
	const struct lat_arg *arg = p;
	double blocks[ROWS_BLOCKS];
	uint64_t start;
	uint32_t b, i;

	if (arg->mid_line)
		shift_heads(s);
	for (b = 0; b < ROWS_BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < rows_opt.round; i++) {
			if (s->is_child)
				recv_one(s, s->buf);
			else
				send_one(&s->conns[i % s->cnt], s->buf, arg->len);
		}
		blocks[b] = (double)(util_clock_ns() - start) / rows_opt.round;
	}
	return rows_median(blocks, ROWS_BLOCKS);
}

static void bench_ahead(void)
{
	static const int aheads[] = { 0, 128, 256, 512, 1024, -1 };
	static const uint32_t lens[] = { 8, 32, 100, 256, 1000 };
	static struct lat_arg args[5];
	struct row *r;
	uint32_t i;

	strcpy(rows_add(job_floor, 1, 4096, NULL)->name, "floor: one word, a line each way");
	for (i = 0; i < 5 * 6; i++) {
		args[i / 6].len = lens[i / 6];
		r = rows_add(job_latency, 1, 1 << 20, NULL);
		r->arg = &args[i / 6];
		r->conf.ahead = aheads[i % 6];
		snprintf(r->name, sizeof(r->name), "%u B, %d B cleared ahead", lens[i / 6],
			 aheads[i % 6]);
	}
	for (i = 0; i < 6; i++) {
		r = rows_add(job_stream, 1, 1 << 20, NULL);
		r->arg = &args[0];
		r->conf.ahead = aheads[i % 6];
		snprintf(r->name, sizeof(r->name), "stream of 8 B, %d B cleared ahead", aheads[i]);
	}
	for (i = 0; i < 6; i++) {
		r = rows_add(job_stream, 1, 1 << 20, NULL);
		r->arg = &args[4];
		r->conf.ahead = aheads[i % 6];
		snprintf(r->name, sizeof(r->name), "stream of 1000 B, %d B cleared ahead",
			 aheads[i]);
	}
	rows_run("ahead");
}

static void bench_links(void)
{
	static const uint32_t cnts[] = { 1, 4, 16, 17, 64, 1024 };
	char name[64];
	uint32_t i;

	strcpy(rows_add(job_floor, 1, 4096, NULL)->name, "floor: one word, a line each way");
	for (i = 0; i < 2 * 6; i++) {
		snprintf(name, sizeof(name), "8 B, %u links, %s", cnts[i / 2],
			 i % 2 ? "all in turn" : "1 active");
		add_latency(name, (struct lat_arg){ .len = 8, .in_turn = i % 2 }, cnts[i / 2],
			    16384);
	}
	rows_run("links");
}

/* ---- poll ---- */

/* Sends on one link until the others are in their idle state, then nothing. */
static double job_poll(struct side *s, const void *p)
{
	double blocks[ROWS_BLOCKS];
	struct dev_event ev;
	uint64_t start;
	uint32_t b, i;

	for (i = 0; i < 100000; i++) {
		if (s->is_child) {
			send_one(recv_one(s, s->buf), s->buf, 8);
			continue;
		}
		send_one(&s->conns[0], s->buf, 8);
		recv_one(s, s->buf);
	}
	for (b = 0; b < ROWS_BLOCKS && !s->is_child; b++) {
		start = util_clock_ns();
		for (i = 0; i < rows_opt.round; i++)
			CHECK(!shm_dev_ops_inline.poll(s->dev, &ev));
		blocks[b] = (double)(util_clock_ns() - start) / rows_opt.round;
	}
	return s->is_child ? 0 : rows_median(blocks, ROWS_BLOCKS);
}

static void bench_poll(void)
{
	static const uint32_t cnts[] = { 1, 2, 4, 16, 64, 1024 };
	uint32_t i;

	for (i = 0; i < 6; i++) {
		struct row *r = rows_add(job_poll, cnts[i], 16384, NULL);

		snprintf(r->name, sizeof(r->name), "idle poll, %u links, 1 was active", cnts[i]);
	}
	rows_run("poll");
}

/* ---- publish ---- */

/* Measures the writer's instructions. The reader does not run: lines stay in the writer's cache. */
static double job_publish(struct side *s, const void *p)
{
	struct conn *c = &s->conns[0];
	double blocks[ROWS_BLOCKS];
	uint64_t start;
	uint32_t b, i, off = 0;

	for (b = 0; b < ROWS_BLOCKS && !s->is_child; b++) {
		start = util_clock_ns();
		for (i = 0; i < rows_opt.round; i++) {
			shm_link_ops_inline.write_imm(c->link, off, 64, 2);
			off = (off + 64) & 16383;
		}
		blocks[b] = (double)(util_clock_ns() - start) / rows_opt.round;
	}
	return s->is_child ? 0 : rows_median(blocks, ROWS_BLOCKS);
}

static void bench_publish(void)
{
	static const uint32_t cnts[] = { 1, 4, 16, 64, 1024 };
	static const struct lat_arg small = { .len = 8 }, big = { .len = 1000 };
	struct row *r;
	uint32_t i;

	strcpy(rows_add(job_publish, 1, 1 << 20, NULL)->name, "write_imm, reader stands still");
	for (i = 0; i < 2 * 5; i++) {
		r = rows_add(job_stream, cnts[i / 2], 16384, i % 2 ? &tune_posts_only : NULL);
		r->arg = &small;
		snprintf(r->name, sizeof(r->name), "stream, batches of 64 B, %u links%s",
			 cnts[i / 2], i % 2 ? ", posts only" : "");
	}
	r = rows_add(job_stream, 1, 1 << 20, NULL);
	r->arg = &big;
	strcpy(r->name, "stream, batches of 1056 B, 1 link");
	rows_run("publish");
}

/* ---- wake ---- */

static void recv_asleep(struct side *s)
{
	struct pollfd pfd = { .fd = shm_dev_wait_fd(s->dev), .events = POLLIN };
	struct dev_event ev;

	for (;;) {
		if (shm_dev_ops_inline.poll(s->dev, &ev)) {
			if (take_one(ev.link->user, ev.imm, s->buf) >= 0)
				return;
			continue;
		}
		if (shm_dev_arm(s->dev))
			continue;
		poll(&pfd, 1, 1000);
		shm_dev_disarm(s->dev);
	}
}

static double job_wake(struct side *s, const void *p)
{
	double blocks[ROWS_BLOCKS];
	uint64_t start;
	uint32_t b, i, n = rows_opt.round / 10;

	for (b = 0; b < ROWS_BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < n; i++) {
			if (!s->is_child)
				send_one(&s->conns[0], s->buf, 8);
			recv_asleep(s);
			if (s->is_child)
				send_one(&s->conns[0], s->buf, 8);
		}
		blocks[b] = (double)(util_clock_ns() - start) / n / 2;
	}
	return rows_median(blocks, ROWS_BLOCKS);
}

struct arm_arg {
	bool spin; /* The peer runs meanwhile: membarrier interrupts it */
};

static double job_arm(struct side *s, const void *p)
{
	const struct arm_arg *arg = p;
	double blocks[ROWS_BLOCKS];
	struct dev_event ev;
	uint64_t start;
	uint32_t b, i, n = rows_opt.round / 10;

	if (s->is_child) {
		if (arg->spin)
			recv_one(s, s->buf);
		return 0;
	}
	for (b = 0; b < ROWS_BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < n; i++) {
			CHECK(!shm_dev_arm(s->dev));
			shm_dev_disarm(s->dev);
			CHECK(!shm_dev_ops_inline.poll(s->dev, &ev));
		}
		blocks[b] = (double)(util_clock_ns() - start) / n;
	}
	send_one(&s->conns[0], s->buf, 8);
	return rows_median(blocks, ROWS_BLOCKS);
}

static void bench_wake(void)
{
	static const struct arm_arg spin = { .spin = true }, blocked;
	struct row *r;

	strcpy(rows_add(job_wake, 1, 65536, NULL)->name, "one way, both sleep in poll(2)");
	r = rows_add(job_arm, 1, 65536, NULL);
	r->arg = &spin;
	strcpy(r->name, "arm + disarm, peer spins");
	r = rows_add(job_arm, 1, 65536, NULL);
	r->arg = &blocked;
	strcpy(r->name, "arm + disarm, peer blocked");
	rows_run("wake");
}

/* ---- main ---- */

static void parse(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick"))
			rows_opt.passes = 3;
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			rows_opt.only = argv[++i];
		else if (!strcmp(argv[i], "--json") && i + 1 < argc)
			CHECK((rows_opt.json = fopen(argv[++i], "w")));
		else if (!strcmp(argv[i], "--cpu") && i + 1 < argc)
			CHECK(sscanf(argv[++i], "%d,%d", &rows_opt.cpu[0], &rows_opt.cpu[1]) == 2);
		else {
			fprintf(stderr,
				"usage: %s [--cpu A,B] [--only SECTION] "
				"[--json FILE] [--quick]\n",
				argv[0]);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct rlimit files;

	parse(argc, argv);
	util_params.single_copy = 1;
	CHECK(!getrlimit(RLIMIT_NOFILE, &files)); /* 1024 links have as many wakeup descriptors */
	files.rlim_cur = files.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &files));
	if (wants("latency"))
		bench_latency();
	if (wants("ahead"))
		bench_ahead();
	if (wants("links"))
		bench_links();
	if (wants("poll"))
		bench_poll();
	if (wants("publish"))
		bench_publish();
	if (wants("wake"))
		bench_wake();
	if (wants("copy"))
		bench_copy();
	if (wants("attacked"))
		bench_attacked();
	if (rows_opt.json)
		fclose(rows_opt.json);
	return 0;
}
