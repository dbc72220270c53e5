/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Section "attacked" of shm_link_bench: what a peer that writes shared lines without end costs the
 * messages of another one.
 *
 * The honest peer is a device of the same process, so that the hostile one has the other processor.
 * A figure is the time of a message with the polls that follow it.
 */
#include "shm_link_rows.h"

#include <sys/socket.h>

#include "util/clock.h"

#define ATTACKED_ROUNDS 200000u /* longer than any pause of the attacked device's suspicion */

enum target {
	TARGET_NONE = 0,
	TARGET_INBOX = 1, /* the line of the inbox that polls load */
	TARGET_RINGS = 2, /* the words that the hostile peer's next messages would set */
};

struct attacked_arg {
	int targets;    /* enum target, or-ed */
	uint32_t polls; /* after each message */
};

/** Connects a device of this process to s->dev. Returns its end. */
static struct conn *honest_open(struct side *s, struct conn ends[2], struct dev **dev)
{
	struct dev *devs[2] = { s->dev, NULL };
	struct dev_desc descs[2];

	CHECK(!shm_dev_open(dev));
	devs[1] = *dev;
	memset(descs, 0, sizeof(descs));
	for (int i = 0; i < 2; i++) {
		CHECK(!shm_link_create(devs[i], 16384, &ends[i].link));
		CHECK(!ends[i].link->ops->describe(ends[i].link, &descs[i]));
	}
	for (int i = 0; i < 2; i++) {
		CHECK(!ends[i].link->ops->connect(ends[i].link, &descs[!i]));
		CHECK(!ends[i].link->ops->attach(ends[i].link));
		ends[i].link->user = &ends[i];
	}
	return &ends[1];
}

static void hammer(struct side *s, int targets)
{
	struct shm_inbox *inbox = ((struct shm_link *)s->conns[0].link)->peer_inbox;
	char byte;

	while (recv(s->sock, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0)
		for (int i = 0; i < 10000; i++) {
			if (targets & TARGET_INBOX)
				__atomic_store_n(&inbox->summary, 0, __ATOMIC_RELAXED);
			for (uint32_t k = 0; targets & TARGET_RINGS && k < s->cnt; k++)
				shm_link_clear(s->conns[k].link, 0);
		}
}

static double job_attacked(struct side *s, const void *p)
{
	const struct attacked_arg *arg = p;
	double blocks[ROWS_BLOCKS];
	struct conn ends[2] = { { 0 } }, *honest;
	struct dev_event ev;
	struct dev *dev;
	uint64_t start;

	if (s->is_child) {
		hammer(s, arg->targets);
		return 0;
	}
	honest = honest_open(s, ends, &dev);
	for (uint32_t b = 0; b < ROWS_BLOCKS; b++) {
		start = util_clock_ns();
		for (uint32_t i = 0; i < ATTACKED_ROUNDS / ROWS_BLOCKS; i++) {
			send_one(honest, s->buf, 8);
			recv_one(s, s->buf);
			for (uint32_t k = 0; k < arg->polls; k++)
				CHECK(!shm_dev_ops_inline.poll(s->dev, &ev));
		}
		blocks[b] = (double)(util_clock_ns() - start) / (ATTACKED_ROUNDS / ROWS_BLOCKS);
	}
	for (int i = 0; i < 2; i++) {
		shm_link_detach(ends[i].link);
		shm_link_close(ends[i].link);
	}
	shm_dev_close(dev);
	return rows_median(blocks, ROWS_BLOCKS);
}

void bench_attacked(void)
{
	static const struct {
		const char *name;
		int targets;
	} kinds[] = { { "nothing", TARGET_NONE },
		      { "the inbox", TARGET_INBOX },
		      { "its own rings", TARGET_RINGS },
		      { "both", TARGET_INBOX | TARGET_RINGS } };
	static const uint32_t polls[] = { 0, 16 }, links[] = { 1, 12 };
	static struct attacked_arg args[16];
	struct row *r;

	for (uint32_t i = 0; i < 16; i++) {
		args[i] = (struct attacked_arg){ kinds[i % 4].targets, polls[i / 4 % 2] };
		r = rows_add(job_attacked, links[i / 8], 16384, NULL);
		r->arg = &args[i];
		snprintf(r->name, sizeof(r->name), "%u polls, %u hostile links write %s",
			 polls[i / 4 % 2], links[i / 8], kinds[i % 4].name);
	}
	rows_run("attacked");
}
