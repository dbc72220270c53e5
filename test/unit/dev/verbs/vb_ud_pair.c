/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vb_ud_pair.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>

#include "util/clock.h"

struct vb_dev *ud_pair_devs[2];
struct dev_dgram *ud_pair[2];
struct dev_dgram_ah *ud_pair_way[2];

void ud_pair_close(void)
{
	for (int i = 0; i < 2; i++) {
		if (ud_pair_way[i])
			vb_ud_forget(ud_pair[i], ud_pair_way[i]);
		if (ud_pair[i])
			vb_ud_close(ud_pair[i]);
		ud_pair_way[i] = NULL;
		ud_pair[i] = NULL;
	}
	pair_fini();
}

void ud_pair_open(uint32_t rx_cnt, uint32_t tx_cnt)
{
	struct dev_dgram_attr attr = { .rx_cnt = rx_cnt, .tx_cnt = tx_cnt };
	struct dev_desc descs[2];

	pair_open(ud_pair_devs, NULL);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(vb_ud_open((struct dev *)ud_pair_devs[i], &attr, &ud_pair[i]), 0);
		cr_assert_eq(ib_ud_describe(ud_pair[i], &descs[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		cr_assert_eq(vb_ud_resolve(ud_pair[i], &descs[!i], &ud_pair_way[i]), 0);
}

struct dev_dgram_out ud_pair_text(int from, const char *what)
{
	return (struct dev_dgram_out){ .to = ud_pair_way[from],
				       .base = { what },
				       .len = { (uint32_t)strlen(what) } };
}

void ud_pair_await(int at, struct dev_dgram_in *in, int cnt)
{
	uint64_t end = util_clock_ns() + PAIR_PATIENCE_S * UTIL_NS_PER_S;
	int ret, n = 0;

	while (n < cnt) {
		ret = vb_ud_poll(ud_pair[at], in + n, (unsigned)(cnt - n));
		cr_assert_geq(ret, 0);
		n += ret;
		cr_assert_lt(util_clock_ns(), end, "%d of %d came", n, cnt);
		sched_yield();
	}
}
