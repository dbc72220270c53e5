/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Links that come and go: see dev_link.h. */
#include "dev_link.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#define CHURN_ROUNDS 60u

/*
 * Opens and closes links with unread arrivals, so that queue pair numbers are used again while
 * there are completions of their previous users. Each round has immediates of its own. In every
 * third one side 1 closes without having attached.
 */
void churn(void)
{
	uint32_t round, i, got = 0, confirmed = 0;
	uint64_t begin = util_clock_ns();
	struct dev_desc own, peer;
	struct dev_link *link;
	struct dev_event ev;

	for (round = 1; round <= CHURN_ROUNDS; round++) {
		bool skip = side && round % 3 == 0;

		memset(&own, 0, sizeof(own));
		CHECK(!ops->link_create(dev, 1024, &link));
		CHECK(!link->ops->describe(link, &own));
		pair_tell(&own, sizeof(own));
		pair_hear(&peer, sizeof(peer));
		CHECK(!link->ops->connect(link, &peer));
		pair_meet();
		CHECK(skip || !link->ops->attach(link));
		for (i = 0; i < 2 && !skip; i++)
			CHECK(!link->ops->write_imm(link, 0, 32, round));
		pair_meet();
		while (round % 2 && round % 3 && got < confirmed + 2) {
			CHECK(util_clock_ns() - begin < LIMIT_NS);
			if (!ops->poll(dev, &ev))
				continue;
			CHECK(ev.link == link && ev.kind == DEV_EV_IMM && ev.imm == round);
			got++;
		}
		confirmed = got;
		pair_meet();
		if (!skip)
			link->ops->detach(link);
		link->ops->close(link);
		/* No event of a link that was closed before its events were read. */
		CHECK(round % 2 || !ops->poll(dev, &ev));
	}
}

/*
 * Connects two links of this process with each other, again and again, as the handshake does. Every
 * second pair is closed at once; the others are passed to the polling thread, which attaches the
 * second link only when it has an event.
 */
static struct {
	struct dev_link *a, *b;
	enum { LOOP_NONE, LOOP_MADE, LOOP_SENT, LOOP_USED } state;
	uint32_t round, confirmed;
	bool stop;
	pthread_t thread;
} loops;

static void loop_connect(struct dev_link *to, struct dev_link *from)
{
	struct dev_desc desc;

	memset(&desc, 0, sizeof(desc));
	CHECK(!from->ops->describe(from, &desc));
	CHECK(!to->ops->connect(to, &desc));
}

static void *loop_maker(void *arg)
{
	uint32_t n;

	for (n = 0; n % 2 || !__atomic_load_n(&loops.stop, __ATOMIC_ACQUIRE); n++) {
		struct dev_link *a, *b;

		CHECK(!ops->link_create(dev, 1024, &a) && !ops->link_create(dev, 1024, &b));
		loop_connect(a, b);
		loop_connect(b, a);
		if (n % 2) {
			loops.a = a;
			loops.b = b;
			__atomic_store_n(&loops.state, LOOP_MADE, __ATOMIC_RELEASE);
			while (__atomic_load_n(&loops.state, __ATOMIC_ACQUIRE) != LOOP_USED)
				usleep(200);
		}
		a->ops->close(a);
		b->ops->close(b);
		usleep(500);
	}
	__atomic_store_n(&loops.stop, false, __ATOMIC_RELEASE);
	return NULL;
}

void loop_use(void)
{
	int ret;

	switch (__atomic_load_n(&loops.state, __ATOMIC_ACQUIRE)) {
	case LOOP_MADE:
		if (!loops.a->user)
			CHECK(!loops.a->ops->attach(loops.a));
		loops.a->user = &loops;
		ret = loops.a->ops->write_imm(loops.a, 0, 32, loops.round + 1);
		CHECK(!ret || ret == -FI_EAGAIN);
		if (ret)
			return;
		loops.round++;
		__atomic_store_n(&loops.state, LOOP_SENT, __ATOMIC_RELEASE);
		break;
	case LOOP_SENT:
		if (pair_rand() & 31)
			return;
		if (loops.confirmed == loops.round) {
			loops.a->ops->detach(loops.a);
			loops.b->ops->detach(loops.b);
			__atomic_store_n(&loops.state, LOOP_USED, __ATOMIC_RELEASE);
		} else if (!loops.b->user) {
			loops.b->user = &loops;
			CHECK(!loops.b->ops->attach(loops.b));
		}
		break;
	default: break;
	}
}

void loop_start(void)
{
	CHECK(!pthread_create(&loops.thread, NULL, loop_maker, NULL));
}

bool loop_take(const struct dev_event *ev)
{
	if (ev->link->user != &loops)
		return false;
	CHECK(ev->kind == DEV_EV_IMM && ev->imm == loops.round);
	loops.confirmed = ev->imm;
	return true;
}

uint32_t loop_stop(void (*poll_one)(void))
{
	/* The thread ends after a pair that was used. */
	__atomic_store_n(&loops.stop, true, __ATOMIC_RELEASE);
	while (__atomic_load_n(&loops.stop, __ATOMIC_ACQUIRE)) {
		poll_one();
		loop_use();
	}
	pthread_join(loops.thread, NULL);
	CHECK(loops.confirmed);
	return loops.round;
}
