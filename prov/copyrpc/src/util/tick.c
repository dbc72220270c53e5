/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Time from the processor's counter, calibrated by the clock: see tick.h. */
#include "util/tick.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define UTIL_TICK_SOURCE   "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define UTIL_TICK_TRIES    4
#define UTIL_TICK_PAIR     4096u /* ticks around one clock read, without an interruption */
#define UTIL_TICK_RATE_MIN (1ull << 32 >> 4) /* 16 GHz */
#define UTIL_TICK_RATE_MAX (1ull << 32 << 2) /* 250 MHz */

/** Returns whether the kernel's clock source is the counter. */
static bool util_tick_asks(void)
{
	char name[8] = "";
	int fd = open(UTIL_TICK_SOURCE, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);

	if (fd >= 0)
		close(fd);
	return len > 0 && !strcmp(name, "tsc\n");
}

static bool util_tick_is_trusted(void)
{
	static int known; /* atomic; 1: yes, -1: no, 0: the first caller reads it */
	int is = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!is) {
		is = util_tick_asks() ? 1 : -1;
		__atomic_store_n(&known, is, __ATOMIC_RELAXED);
	}
	return is > 0;
}

void util_tick_set(struct util_tick *t, uint64_t at, uint64_t ns)
{
	uint64_t ticks = at - t->at, passed = ns - t->ns, rate;

	if (ns >= t->ns && passed < UTIL_TICK_LEAST_NS && !t->most)
		return; /* calibration interval too short */
	rate = ticks && passed < UTIL_TICK_MOST_NS ? (passed << 32) / ticks : 0;
	t->at = at;
	t->ns = ns;
	t->rate = rate;
	t->most = 0;
	if (rate >= UTIL_TICK_RATE_MIN && rate <= UTIL_TICK_RATE_MAX)
		t->most = (UTIL_TICK_EVERY_NS << 32) / rate;
}

/** Reads counter and clock together. Returns the ticks in between, the uncertainty of the pair. */
static uint64_t util_tick_pair(uint64_t *at, uint64_t *ns)
{
	uint64_t before = util_tick_count();

	*ns = util_clock_ns();
	*at = util_tick_count();
	return *at - before;
}

uint64_t util_tick_look(struct util_tick *t)
{
	uint64_t at, ns, late;
	int tries = UTIL_TICK_TRIES;

	if (!util_tick_is_trusted())
		return util_clock_ns();
	do
		late = util_tick_pair(&at, &ns);
	while (late > UTIL_TICK_PAIR && --tries);
	util_tick_set(t, at - late / 2, ns);
	return ns;
}

void util_tick_init(struct util_tick *t)
{
	*t = (struct util_tick){ .ns = 0 };
	util_tick_look(t);
}
