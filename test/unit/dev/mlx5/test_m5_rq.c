/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device here takes places in order, up to the record. It identifies a buffer by the address in
 * the WQE, which must be the buffer in the table.
 */
#include "dev/mlx5/m5_rq.h"

#include <stdlib.h>

#include "bytes.h"
#include "support/guard.h"
#include "support/rng.h"

TestSuite(m5_rq, .timeout = 200);

#define PLACES_MAX 64u
#define BASE       0x100000ull

static struct m5_rq rq;
static uint8_t *buf;
static uint32_t places, record;
static uint16_t taken;
static uint64_t words[PLACES_MAX];

static void setup(uint32_t cnt, uint32_t stride, uint16_t counter)
{
	places = cnt;
	buf = guard_alloc((size_t)cnt * stride < 32 ? 32 : (size_t)cnt * stride);
	record = htobe32(counter);
	taken = counter;
	m5_rq_init(&rq, buf, cnt, stride, &record, words, 0x1028, 0x00c0ffee, counter);
}

static void put(uint64_t user)
{
	m5_rq_put(&rq, (const void *)(uintptr_t)(BASE + user * 0x1000), user);
}

/** Takes one place. Compares the buffer there with the table. */
static bool take(uint64_t *user)
{
	const struct m5_data *data = (const void *)(buf + (taken & (places - 1)) * rq.stride);
	uint64_t found = (be64toh(data->addr) - BASE) / 0x1000;

	if (taken == (uint16_t)be32toh(record))
		return false;
	cr_assert(m5_rq_take(&rq, taken++, user));
	cr_assert_eq(*user, found);
	return true;
}

Test(m5_rq, a_place_has_length_key_and_address)
{
	setup(4, 16, 0);
	m5_rq_put(&rq, (const void *)0x0102030405060708ull, 9);
	EXPECT_AT(buf, 0x00, 0x00, 0x10, 0x28, 0x00, 0xc0, 0xff, 0xee, 0x01, 0x02, 0x03, 0x04, 0x05,
		  0x06, 0x07, 0x08);
	EXPECT_AT(&record, 0, 0, 0, 0);
	m5_rq_publish(&rq);
	EXPECT_AT(&record, 0, 0, 0, 1);
	guard_free(buf, 4 * 16);
}

Test(m5_rq, a_longer_place_terminates_its_list_of_entries)
{
	setup(4, 32, 0);
	put(0);
	EXPECT_AT(buf + 16, 0, 0, 0, 0, 0, 0, 1, 0);
	guard_free(buf, 4 * 32);
}

Test(m5_rq, the_device_takes_only_published_buffers)
{
	uint64_t user = 0;

	setup(4, 16, 0);
	put(1);
	cr_expect(!m5_rq_take(&rq, 0, &user));
	m5_rq_publish(&rq);
	cr_expect(m5_rq_take(&rq, 0, &user));
	cr_expect_eq(user, 1);
	cr_expect(!m5_rq_take(&rq, 0, &user), "not twice");
	guard_free(buf, 4 * 16);
}

Test(m5_rq, publishing_is_due_in_bulk_or_when_the_device_runs_dry)
{
	uint64_t user;

	setup(64, 16, 0);
	cr_expect_eq(rq.bulk, 16);
	cr_expect(!m5_rq_is_due(&rq), "nothing to publish");
	put(0);
	cr_expect(m5_rq_is_due(&rq), "the device has nothing");
	for (uint64_t i = 1; i < 40; i++)
		put(i);
	m5_rq_publish(&rq);
	for (uint64_t i = 40; i < 55; i++) {
		put(i);
		cr_expect(!m5_rq_is_due(&rq), "%llu unpublished", (unsigned long long)i - 39);
	}
	put(55);
	cr_expect(m5_rq_is_due(&rq));
	m5_rq_publish(&rq);
	put(56);
	while (!m5_rq_is_due(&rq))
		cr_assert(take(&user));
	cr_expect_eq((uint16_t)(rq.published - taken), 15);
	guard_free(buf, 64 * 16);
}

/* Seeded: buffers return in any order, over many laps and past 16 bits. */
Test(m5_rq, the_table_has_the_buffer_that_the_device_uses)
{
	static const uint16_t starts[] = { 0, 0xfff9 };
	struct rng rng = { 7 };
	uint64_t retained[PLACES_MAX], user;
	uint32_t cnt;

	for (uint32_t size = 1; size <= 32; size *= 4) {
		for (unsigned s = 0; s < 2; s++) {
			setup(size, 16, starts[s]);
			for (cnt = 0; cnt < size; cnt++)
				retained[cnt] = cnt;
			for (unsigned step = 0; step < 70000; step++) {
				if (cnt && rng_below(&rng, 2)) {
					uint32_t pick = (uint32_t)rng_below(&rng, cnt);

					put(retained[pick]);
					retained[pick] = retained[--cnt];
					if (m5_rq_is_due(&rq))
						m5_rq_publish(&rq);
				} else if (take(&user)) {
					retained[cnt++] = user;
				}
				cr_assert_eq(m5_recv_free(&rq.recv), cnt);
			}
			guard_free(buf, size * 16 < 32 ? 32 : (size_t)size * 16);
		}
	}
}
