/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cost of a peer that does not read its queue, for the others.
 *
 * A hub sends to two peers: to a reader, and to a sleeper that makes no progress at all. Sends to
 * the sleeper are accepted until there is no room (-FI_EAGAIN), a bounded number, in bounded
 * memory; from then on each is refused. Meanwhile every message between the other two arrives, with
 * as few polls as before. Then the sleeper reads: all accepted messages are there, whole and in
 * order, and no other.
 *
 * All three are endpoints of this process, each with a domain of its own that makes progress on its
 * own thread of calls only.
 *
 * usage: slow_reader [messages between the other two [asleep]]
 * asleep: the sleeper has made no progress at all, not even for its connection.
 */
#include <stdint.h>

#include "integ/fab.h"
#include "support/proc.h"

#define PATIENCE  120.0 /* seconds */
#define LEN_MAX   200000u
#define TAKEN_MAX 100000u     /* limit of sends that wait for the sleeper */
#define GROW_MAX  (64u << 10) /* limit of the memory for them, in KiB */
/* refusals in a row, with progress in between, after which there is no room */
#define REFUSED 2000u

static struct fab hub, reader, sleeper;
static fi_addr_t to_reader, to_sleeper, to_hub;
static uint8_t in[LEN_MAX], pattern[LEN_MAX + 251];
static uint64_t taken, completed, injected;

static uint32_t len_of(uint64_t number)
{
	static const uint32_t lens[] = { 8, 100, 2000, 20000, LEN_MAX };

	return number % 64 ? lens[number % 3] : lens[3 + number / 64 % 2];
}

static const uint8_t *bytes_of(uint64_t number)
{
	return pattern + number % 251;
}

/* ---- to the sleeper ---- */

static bool send_one(void)
{
	ssize_t ret = -FI_EAGAIN;

	if (taken % 5 == 4 && len_of(taken) <= 100)
		ret = fi_tinject(hub.ep, bytes_of(taken), len_of(taken), to_sleeper, taken);
	injected += !ret;
	if (ret == -FI_EAGAIN) /* other sends wait too */
		ret = fi_tsend(hub.ep, bytes_of(taken), len_of(taken), NULL, to_sleeper, taken,
			       &taken);
	FAB_TRUE(!ret || ret == -FI_EAGAIN);
	taken += !ret;
	return !ret;
}

/**
 * Reads a completion of the hub: of sends to the sleeper, of which few can end, or of the others.
 */
static void *look(void)
{
	struct fi_cq_tagged_entry entry;
	int err;

	if (!fab_poll(&hub, &entry, &err))
		return NULL;
	FAB_TRUE(!err);
	if (entry.op_context != &taken)
		return entry.op_context;
	completed++;
	return NULL;
}

static void send_until_refused(void)
{
	unsigned long before = proc_resident_kib(getpid());
	unsigned refused = 0;

	while (refused < REFUSED) {
		refused = send_one() ? 0 : refused + 1;
		FAB_TRUE(taken < TAKEN_MAX);
		look();
	}
	printf("slow_reader: %lu messages were taken, %lu of them completed, %ld KiB more in use\n",
	       (unsigned long)taken, (unsigned long)completed,
	       (long)(proc_resident_kib(getpid()) - before));
	fflush(stdout);
	FAB_TRUE(proc_resident_kib(getpid()) < before + GROW_MAX);
}

/* Sends there and back. Returns the number of the hub's polls. */

/** Sends there and back. Returns the number of the hub's polls. */
static uint64_t talk(uint64_t cnt)
{
	struct fi_cq_tagged_entry entry;
	double begin = fab_seconds();
	uint64_t looks = 0, number, back = 0;
	int err;

	for (number = 0; number < cnt; number++) {
		uint64_t theirs = 0;

		FAB_CHECK(fi_trecv(reader.ep, &theirs, 8, NULL, to_hub, 1, 0, &reader));
		FAB_CHECK(fi_trecv(hub.ep, &back, 8, NULL, to_reader, 2, 0, &back));
		while (fi_tinject(hub.ep, &number, 8, to_reader, 1)) {
			look();
			fi_cq_read(reader.cq, NULL, 0);
		}
		while (!fab_poll(&reader, &entry, &err))
			look();
		FAB_TRUE(!err && theirs == number);
		while (fi_tinject(reader.ep, &number, 8, to_hub, 2))
			fi_cq_read(reader.cq, NULL, 0);
		while (look() != &back) {
			fi_cq_read(reader.cq, NULL, 0);
			looks++;
		}
		FAB_TRUE(back == number);
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	}
	return looks;
}

/* ---- the sleeper reads ---- */

/** Makes progress until the sleeper is connected and has received everything. */
static void greet(void)
{
	struct fi_cq_tagged_entry entry;
	int err;

	FAB_TRUE(send_one());
	FAB_CHECK(fi_trecv(sleeper.ep, in, LEN_MAX, NULL, FI_ADDR_UNSPEC, 0, 0, in));
	while (!fab_poll(&sleeper, &entry, &err))
		look();
	while (!completed) {
		look();
		fi_cq_read(sleeper.cq, NULL, 0);
	}
}

static void wake_up(uint64_t number)
{
	struct fi_cq_tagged_entry entry;
	double begin = fab_seconds();
	int err;

	for (; number < taken; number++) {
		FAB_CHECK(
			fi_trecv(sleeper.ep, in, LEN_MAX, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, in));
		while (!fab_poll(&sleeper, &entry, &err)) {
			look();
			FAB_TRUE(fab_seconds() - begin < PATIENCE);
		}
		FAB_TRUE(!err && entry.tag == number && entry.len == len_of(number));
		FAB_TRUE(!memcmp(in, bytes_of(number), entry.len));
	}
	while (completed != taken - injected) {
		look();
		fi_cq_read(sleeper.cq, NULL, 0);
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	}
}

int main(int argc, char **argv)
{
	uint64_t cnt = argc > 1 ? (uint64_t)atoi(argv[1]) : 2000, first, before, after;
	struct sockaddr_in any = fab_addr("127.0.0.1", 0);
	struct fab *all[] = { &hub, &reader, &sleeper };
	unsigned long used;
	uint32_t i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + i / 251);
	for (i = 0; i < 3; i++)
		fab_open(all[i], &any, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	to_reader = fab_insert(&hub, &reader.addr);
	to_sleeper = fab_insert(&hub, &sleeper.addr);
	to_hub = fab_insert(&reader, &hub.addr);
	talk(10);
	if (argc < 3)
		greet();
	first = taken;
	before = talk(cnt);
	send_until_refused();
	used = proc_resident_kib(getpid());
	after = talk(cnt);
	FAB_TRUE(!send_one());
	FAB_TRUE(proc_resident_kib(getpid()) < used + 1024);
	FAB_TRUE(after <= before + cnt);
	printf("slow_reader: %lu looks for %lu messages, %lu beside the sleeper\n",
	       (unsigned long)before, (unsigned long)cnt, (unsigned long)after);
	wake_up(first);
	talk(10);
	printf("slow_reader: ok\n");
	return 0;
}
