/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What does a link of shared memory cost, and which constants does it deserve?
 *
 * Two processes, pinned to different processors (--cpu A,B), joined by the device itself, without
 * any engine: a message is 32 bytes of head, 12 of header and the payload, as on a real ring.
 *
 *   latency   one way (half a round trip): in-band words against posts only, head at a line's
 *             start or in its middle
 *   ahead     the same, by how far the writer clears ahead of the next head (-1: as it chooses)
 *   links     the same with n connected links, one active or all in turn
 *   poll      an idle poll with n connected links
 *   publish   write_imm alone; a stream of small batches
 *   wake      a reader that sleeps in poll(2); arm + disarm
 *   copy      large messages: through the ring, process_vm_readv, both processes half each, and as
 *             the device fetches
 *
 * Prints a table, and with --json FILE the same as JSON lines. A pass runs every row of a section;
 * a value is the median of a pass's blocks, and the table has the best pass (the machine
 * undisturbed) and the median pass. --only SECTION, --quick.
 */
#include "shm_link_pair.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "util/clock.h"
#include "util/param.h"

#define BLOCKS 21

static struct {
	int cpu[2]; /* of the two processes */
	const char *only;
	FILE *json;
	uint32_t round;  /* messages in a block */
	uint32_t passes; /* over all rows of a section */
} opt = { .cpu = { 0, 1 }, .round = 2000, .passes = 9 };

static const struct shm_tune tune_posts_only = { .visits = 16, .tick = 1 };

/* ---- figures ---- */

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), cmp_double);
	return v[n / 2];
}

/** A row of a table: what to run, and what came out, a value per pass. */
struct row {
	char name[80];
	pair_job_fn job;
	const void *arg;
	struct pair_conf conf;
	size_t len; /* bytes of a message, for GB/s; 0: none */
	double *ns;
};

static struct row rows[256];
static uint32_t row_cnt;

static struct row *row_add(pair_job_fn job, uint32_t cnt, uint64_t ring,
			   const struct shm_tune *tune)
{
	struct row *r = &rows[row_cnt++];

	CHECK(row_cnt <= sizeof(rows) / sizeof(rows[0]));
	memset(r, 0, sizeof(*r));
	r->job = job;
	r->conf = (struct pair_conf){ .cpu = { opt.cpu[0], opt.cpu[1] },
				      .cnt = cnt,
				      .ring = ring,
				      .tune = tune,
				      .ahead = -1 };
	return r;
}

static void row_show(const char *section, struct row *r)
{
	double med = median(r->ns, opt.passes), min = r->ns[0];
	char rate[32] = "";

	if (r->len)
		snprintf(rate, sizeof(rate), "%8.2f GB/s", (double)r->len / min);
	printf("  %-48s %10.1f %10.1f ns %s\n", r->name, min, med, rate);
	if (opt.json)
		fprintf(opt.json,
			"{\"section\": \"%s\", \"name\": \"%s\", \"unit\": \"ns\", "
			"\"min\": %.2f, \"median\": %.2f}\n",
			section, r->name, min, med);
}

/* Rows alternate, so that a change of the machine's mood hits them all. */
static void rows_run(const char *section)
{
	uint32_t pass, i;

	for (i = 0; i < row_cnt; i++)
		CHECK((rows[i].ns = calloc(opt.passes, sizeof(double))));
	for (pass = 0; pass < opt.passes; pass++)
		for (i = 0; i < row_cnt; i++)
			rows[i].ns[pass] = pair_run(&rows[i].conf, rows[i].job, rows[i].arg);
	printf("%s%*s%10s %10s\n", section, (int)(50 - strlen(section)), "", "best pass", "median");
	for (i = 0; i < row_cnt; i++) {
		row_show(section, &rows[i]);
		free(rows[i].ns);
	}
	row_cnt = 0;
}

static bool wants(const char *section)
{
	return !opt.only || !strcmp(opt.only, section);
}

/* ---- latency ---- */

struct lat_arg {
	uint32_t len;
	bool mid_line; /* heads stand in the middle of a line */
	bool in_turn;  /* every link, one after the other */
};

/* A batch of an odd number of units, so that what follows begins in the middle of a line. */
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
	double blocks[BLOCKS];
	uint64_t start;
	uint32_t b, i, k = 0;

	if (arg->mid_line)
		shift_heads(s);
	for (b = 0; b < BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < opt.round; i++) {
			if (s->is_child) {
				send_one(recv_one(s, s->buf), s->buf, arg->len);
				continue;
			}
			send_one(&s->conns[k], s->buf, arg->len);
			recv_one(s, s->buf);
			if (arg->in_turn)
				k = k + 1 < s->cnt ? k + 1 : 0;
		}
		blocks[b] = (double)(util_clock_ns() - start) / opt.round / 2;
	}
	return median(blocks, BLOCKS);
}

/* The machine's own figure: a line for each direction, a word that grows. */
static double job_floor(struct side *s, const void *p)
{
	uint64_t *tx = (uint64_t *)(void *)s->conns[0].link->tx_base;
	uint64_t *rx = (uint64_t *)(void *)s->conns[0].link->rx_base;
	double blocks[BLOCKS];
	uint64_t start, n = 0;
	uint32_t b, i;

	(void)p;
	for (b = 0; b < BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < opt.round; i++) {
			n++;
			if (!s->is_child)
				__atomic_store_n(tx, n, __ATOMIC_RELEASE);
			while (__atomic_load_n(rx, __ATOMIC_ACQUIRE) != n)
				;
			if (s->is_child)
				__atomic_store_n(tx, n, __ATOMIC_RELEASE);
		}
		blocks[b] = (double)(util_clock_ns() - start) / opt.round / 2;
	}
	return median(blocks, BLOCKS);
}

static struct lat_arg lat_args[64];

static void add_latency(const char *what, struct lat_arg arg, uint32_t cnt, uint64_t ring)
{
	static uint32_t used;
	struct row *r;
	int posts;

	lat_args[used] = arg;
	for (posts = 0; posts < 2; posts++) {
		r = row_add(job_latency, cnt, ring, posts ? &tune_posts_only : NULL);
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

	strcpy(row_add(job_floor, 1, 4096, NULL)->name, "floor: one word, a line each way");
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
	double blocks[BLOCKS];
	uint64_t start;
	uint32_t b, i;

	if (arg->mid_line)
		shift_heads(s);
	for (b = 0; b < BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < opt.round; i++) {
			if (s->is_child)
				recv_one(s, s->buf);
			else
				send_one(&s->conns[i % s->cnt], s->buf, arg->len);
		}
		blocks[b] = (double)(util_clock_ns() - start) / opt.round;
	}
	return median(blocks, BLOCKS);
}

static void bench_ahead(void)
{
	static const int aheads[] = { 0, 128, 256, 512, 1024, -1 };
	static const uint32_t lens[] = { 8, 32, 100, 256, 1000 };
	static struct lat_arg args[5];
	struct row *r;
	uint32_t i;

	strcpy(row_add(job_floor, 1, 4096, NULL)->name, "floor: one word, a line each way");
	for (i = 0; i < 5 * 6; i++) {
		args[i / 6].len = lens[i / 6];
		r = row_add(job_latency, 1, 1 << 20, NULL);
		r->arg = &args[i / 6];
		r->conf.ahead = aheads[i % 6];
		snprintf(r->name, sizeof(r->name), "%u B, %d B cleared ahead", lens[i / 6],
			 aheads[i % 6]);
	}
	for (i = 0; i < 6; i++) {
		r = row_add(job_stream, 1, 1 << 20, NULL);
		r->arg = &args[0];
		r->conf.ahead = aheads[i % 6];
		snprintf(r->name, sizeof(r->name), "stream of 8 B, %d B cleared ahead", aheads[i]);
	}
	for (i = 0; i < 6; i++) {
		r = row_add(job_stream, 1, 1 << 20, NULL);
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

	strcpy(row_add(job_floor, 1, 4096, NULL)->name, "floor: one word, a line each way");
	for (i = 0; i < 2 * 6; i++) {
		snprintf(name, sizeof(name), "8 B, %u links, %s", cnts[i / 2],
			 i % 2 ? "all in turn" : "1 active");
		add_latency(name, (struct lat_arg){ .len = 8, .in_turn = i % 2 }, cnts[i / 2],
			    16384);
	}
	rows_run("links");
}

/* ---- poll ---- */

/* Traffic on one link until the others are where silence puts them, then nothing. */
static double job_poll(struct side *s, const void *p)
{
	double blocks[BLOCKS];
	struct dev_event ev;
	uint64_t start;
	uint32_t b, i;

	(void)p;
	for (i = 0; i < 100000; i++) {
		if (s->is_child) {
			send_one(recv_one(s, s->buf), s->buf, 8);
			continue;
		}
		send_one(&s->conns[0], s->buf, 8);
		recv_one(s, s->buf);
	}
	for (b = 0; b < BLOCKS && !s->is_child; b++) {
		start = util_clock_ns();
		for (i = 0; i < opt.round; i++)
			CHECK(!shm_dev_ops_inline.poll(s->dev, &ev));
		blocks[b] = (double)(util_clock_ns() - start) / opt.round;
	}
	return s->is_child ? 0 : median(blocks, BLOCKS);
}

static void bench_poll(void)
{
	static const uint32_t cnts[] = { 1, 2, 4, 16, 64, 1024 };
	uint32_t i;

	for (i = 0; i < 6; i++) {
		struct row *r = row_add(job_poll, cnts[i], 16384, NULL);

		snprintf(r->name, sizeof(r->name), "idle poll, %u links, 1 was active", cnts[i]);
	}
	rows_run("poll");
}

/* ---- publish ---- */

/* The reader stands still: what the writer's instructions cost, lines in its own cache. */
static double job_publish(struct side *s, const void *p)
{
	struct conn *c = &s->conns[0];
	double blocks[BLOCKS];
	uint64_t start;
	uint32_t b, i, off = 0;

	(void)p;
	for (b = 0; b < BLOCKS && !s->is_child; b++) {
		start = util_clock_ns();
		for (i = 0; i < opt.round; i++) {
			shm_link_ops_inline.write_imm(c->link, off, 64, 2);
			off = (off + 64) & 16383;
		}
		blocks[b] = (double)(util_clock_ns() - start) / opt.round;
	}
	return s->is_child ? 0 : median(blocks, BLOCKS);
}

static void bench_publish(void)
{
	static const uint32_t cnts[] = { 1, 4, 16, 64, 1024 };
	static const struct lat_arg small = { .len = 8 }, big = { .len = 1000 };
	struct row *r;
	uint32_t i;

	strcpy(row_add(job_publish, 1, 1 << 20, NULL)->name, "write_imm, reader stands still");
	for (i = 0; i < 2 * 5; i++) {
		r = row_add(job_stream, cnts[i / 2], 16384, i % 2 ? &tune_posts_only : NULL);
		r->arg = &small;
		snprintf(r->name, sizeof(r->name), "stream, batches of 64 B, %u links%s",
			 cnts[i / 2], i % 2 ? ", posts only" : "");
	}
	r = row_add(job_stream, 1, 1 << 20, NULL);
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
	double blocks[BLOCKS];
	uint64_t start;
	uint32_t b, i, n = opt.round / 10;

	(void)p;
	for (b = 0; b < BLOCKS; b++) {
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
	return median(blocks, BLOCKS);
}

struct arm_arg {
	bool spin; /* the peer runs meanwhile: membarrier interrupts it */
};

static double job_arm(struct side *s, const void *p)
{
	const struct arm_arg *arg = p;
	double blocks[BLOCKS];
	struct dev_event ev;
	uint64_t start;
	uint32_t b, i, n = opt.round / 10;

	if (s->is_child) {
		if (arg->spin)
			recv_one(s, s->buf);
		return 0;
	}
	for (b = 0; b < BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < n; i++) {
			CHECK(!shm_dev_arm(s->dev));
			shm_dev_disarm(s->dev);
			CHECK(!shm_dev_ops_inline.poll(s->dev, &ev));
		}
		blocks[b] = (double)(util_clock_ns() - start) / n;
	}
	send_one(&s->conns[0], s->buf, 8);
	return median(blocks, BLOCKS);
}

static void bench_wake(void)
{
	static const struct arm_arg spin = { .spin = true }, blocked;
	struct row *r;

	strcpy(row_add(job_wake, 1, 65536, NULL)->name, "one way, both sleep in poll(2)");
	r = row_add(job_arm, 1, 65536, NULL);
	r->arg = &spin;
	strcpy(r->name, "arm + disarm, peer spins");
	r = row_add(job_arm, 1, 65536, NULL);
	r->arg = &blocked;
	strcpy(r->name, "arm + disarm, peer blocked");
	rows_run("wake");
}

/* ---- copy ---- */

enum copy_how { COPY_RING, COPY_READV, COPY_HALVES, COPY_GET };

struct copy_arg {
	enum copy_how how;
	size_t len;
	uint32_t piece; /* COPY_RING */
	bool rotate;    /* other buffers each time, out of the caches as far as 16 MiB can */
};

static void vm_copy(struct side *s, size_t off, size_t len, bool is_write)
{
	struct iovec local = { s->buf + off, len };
	struct iovec remote = { (void *)(uintptr_t)(s->peer_buf + off), len };
	ssize_t n = is_write ? process_vm_writev(s->peer_pid, &local, 1, &remote, 1, 0)
			     : process_vm_readv(s->peer_pid, &local, 1, &remote, 1, 0);

	CHECK(n == (ssize_t)len);
}

/* As an engine fetches: both ends copy, because the sender has lent its memory and polls. */
static void dev_get(struct side *s, size_t off, size_t len)
{
	struct iovec iov = { s->buf + off, len };
	struct dev_get g = {
		.remote_addr = s->peer_buf + off, .iov = &iov, .iov_cnt = 1, .len = len
	};
	struct dev_event ev;

	if (!s->conns[0].link->ops->get(s->conns[0].link, &g))
		while (!shm_dev_ops_inline.poll(s->dev, &ev))
			;
	CHECK(!g.status);
}

/* The sender is the parent: announces, does its part, and waits for the receiver's last word. */
static void copy_send(struct side *s, const struct copy_arg *arg, size_t off)
{
	struct conn *c = &s->conns[0];
	uint8_t word[8] = { 0 };
	size_t done, n;

	if (arg->how == COPY_RING) {
		for (done = 0; done < arg->len; done += n) {
			n = arg->len - done < arg->piece ? arg->len - done : arg->piece;
			send_one(c, s->buf + off + done, (uint32_t)n);
		}
	} else {
		send_one(c, word, sizeof(word));
		if (arg->how == COPY_HALVES) {
			vm_copy(s, off + arg->len / 2, arg->len - arg->len / 2, true);
			send_one(c, word, sizeof(word));
		}
	}
	recv_one(s, word);
}

static void copy_recv(struct side *s, const struct copy_arg *arg, size_t off)
{
	struct conn *c = &s->conns[0];
	uint8_t word[8];
	size_t done;

	if (arg->how == COPY_RING) {
		for (done = 0; done < arg->len; done += arg->piece)
			recv_one(s, s->buf + off + done);
	} else {
		recv_one(s, word);
		if (arg->how == COPY_GET)
			dev_get(s, off, arg->len);
		else
			vm_copy(s, off, arg->how == COPY_HALVES ? arg->len / 2 : arg->len, false);
		if (arg->how == COPY_HALVES)
			recv_one(s, word);
	}
	send_one(c, word, sizeof(word));
}

static double job_copy(struct side *s, const void *p)
{
	const struct copy_arg *arg = p;
	uint32_t b, i, n = (uint32_t)((32u << 20) / arg->len / BLOCKS);
	size_t off = 0;
	double blocks[BLOCKS];
	uint64_t start;

	n = n < 4 ? 4 : n > 2000 ? 2000 : n;
	if (arg->how == COPY_GET && !s->is_child)
		s->conns[0].link->ops->lend(s->conns[0].link, 1);
	for (b = 0; b < BLOCKS; b++) {
		start = util_clock_ns();
		for (i = 0; i < n; i++) {
			if (s->is_child)
				copy_recv(s, arg, off);
			else
				copy_send(s, arg, off);
			if (arg->rotate)
				off = off + 2 * arg->len <= BUF_LEN ? off + arg->len : 0;
		}
		blocks[b] = (double)(util_clock_ns() - start) / n;
	}
	return median(blocks, BLOCKS);
}

static struct copy_arg copy_args[128];

static void add_copy(size_t len, bool rotate)
{
	static const struct {
		const char *name;
		enum copy_how how;
		uint32_t piece;
	} ways[] = {
		{ "ring, pieces of 8 KiB", COPY_RING, 8192 },
		{ "ring, pieces of 32 KiB", COPY_RING, 32768 },
		{ "ring, pieces of 128 KiB", COPY_RING, 131072 },
		{ "readv", COPY_READV, 0 },
		{ "readv half + writev half", COPY_HALVES, 0 },
		{ "get, sender polls", COPY_GET, 0 },
	};
	static uint32_t used;
	struct row *r;
	uint32_t i;

	for (i = 0; i < 6; i++) {
		if (ways[i].piece > 8192 && ways[i].piece > len)
			continue;
		copy_args[used] = (struct copy_arg){ ways[i].how, len, ways[i].piece, rotate };
		r = row_add(job_copy, 1, 1 << 20, NULL);
		r->arg = &copy_args[used++];
		r->len = len;
		snprintf(r->name, sizeof(r->name), "%zu KiB%s, %s", len >> 10,
			 rotate ? " rotating" : "", ways[i].name);
	}
}

static void bench_copy(void)
{
	size_t len;

	for (len = 4096; len <= 4u << 20; len *= 2)
		add_copy(len, false);
	add_copy(256 << 10, true);
	add_copy(1 << 20, true);
	rows_run("copy");
}

/* ---- main ---- */

static void parse(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick"))
			opt.passes = 3;
		else if (!strcmp(argv[i], "--only") && i + 1 < argc)
			opt.only = argv[++i];
		else if (!strcmp(argv[i], "--json") && i + 1 < argc)
			CHECK((opt.json = fopen(argv[++i], "w")));
		else if (!strcmp(argv[i], "--cpu") && i + 1 < argc)
			CHECK(sscanf(argv[++i], "%d,%d", &opt.cpu[0], &opt.cpu[1]) == 2);
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
	CHECK(!getrlimit(RLIMIT_NOFILE, &files)); /* 1024 links hold as many bells */
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
	if (opt.json)
		fclose(opt.json);
	return 0;
}
