/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Large messages over a link of shared memory: through the ring, by process_vm_readv, by both
 * processes half each, and by the device's rendezvous get. A section of shm_link_bench.
 */
#include "shm_link_rows.h"

#include <sys/uio.h>

#include "util/clock.h"

enum copy_how { COPY_RING, COPY_READV, COPY_HALVES, COPY_GET };

struct copy_arg {
	enum copy_how how;
	size_t len;
	uint32_t piece; /* COPY_RING */
	/* Uses other buffers each time, out of the caches as far as 16 MiB suffice */
	bool rotate;
};

static void vm_copy(struct side *s, size_t off, size_t len, bool is_write)
{
	struct iovec local = { s->buf + off, len };
	struct iovec remote = { (void *)(uintptr_t)(s->peer_buf + off), len };
	ssize_t n = is_write ? process_vm_writev(s->peer_pid, &local, 1, &remote, 1, 0)
			     : process_vm_readv(s->peer_pid, &local, 1, &remote, 1, 0);

	CHECK(n == (ssize_t)len);
}

/* Copies as an engine does: both ends copy, because the sender has exposed its memory and polls. */
static void dev_get(struct side *s, size_t off, size_t len, uint64_t key)
{
	struct iovec iov = { s->buf + off, len };
	struct dev_get g = {
		.remote_addr = s->peer_buf + off,
		.remote_key = key,
		.iov = &iov,
		.iov_cnt = 1,
		.len = len,
	};
	struct dev_event ev;

	if (!s->conns[0].link->ops->get(s->conns[0].link, &g))
		while (!shm_dev_ops_inline.poll(s->dev, &ev))
			;
	CHECK(!g.status);
}

/* Exposes the bytes, announces them with their key, and helps until the receiver has them. */
static void copy_expose(struct side *s, const struct copy_arg *arg, size_t off)
{
	struct dev_link *link = s->conns[0].link;
	struct dev_mem *mem;
	uint8_t word[8];

	CHECK(!link->ops->expose(link, s->buf + off, arg->len, &mem));
	memcpy(word, &mem->remote_key, sizeof(word));
	send_one(&s->conns[0], word, sizeof(word));
	recv_one(s, word);
	link->ops->unexpose(link, mem);
}

/* Sends as the parent: announces, copies its part, and waits for the receiver's last word. */
static void copy_send(struct side *s, const struct copy_arg *arg, size_t off)
{
	struct conn *c = &s->conns[0];
	uint8_t word[8] = { 0 };
	size_t done, n;

	if (arg->how == COPY_GET) {
		copy_expose(s, arg, off);
		return;
	}
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
	uint64_t key;
	size_t done;

	if (arg->how == COPY_RING) {
		for (done = 0; done < arg->len; done += arg->piece)
			recv_one(s, s->buf + off + done);
	} else {
		recv_one(s, word);
		memcpy(&key, word, sizeof(key));
		if (arg->how == COPY_GET)
			dev_get(s, off, arg->len, key);
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
	uint32_t b, i, n = (uint32_t)((32u << 20) / arg->len / ROWS_BLOCKS);
	size_t off = 0;
	double blocks[ROWS_BLOCKS];
	uint64_t start;

	n = n < 4 ? 4 : n > 2000 ? 2000 : n;
	for (b = 0; b < ROWS_BLOCKS; b++) {
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
	return rows_median(blocks, ROWS_BLOCKS);
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
		r = rows_add(job_copy, 1, 1 << 20, NULL);
		r->arg = &copy_args[used++];
		r->len = len;
		snprintf(r->name, sizeof(r->name), "%zu KiB%s, %s", len >> 10,
			 rotate ? " rotating" : "", ways[i].name);
	}
}

void bench_copy(void)
{
	size_t len;

	for (len = 4096; len <= 4u << 20; len *= 2)
		add_copy(len, false);
	add_copy(256 << 10, true);
	add_copy(1 << 20, true);
	rows_run("copy");
}
