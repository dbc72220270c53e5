/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Gets and puts beside the messages: see dev_link.h. */
#include "dev_link.h"
#include "reg_seen.h"

#include <rdma/fi_errno.h>

#define BUF_LEN  (256u << 10) /* registered for the peer: a half to get, a half to put into */
#define BULK_OPS 40u

/** Message that the ends exchange in addition to descriptions. */
struct bulk_info {
	uint64_t addr, key;
};

static uint8_t *buf, *local;
static struct dev_mem *buf_mem, *local_mem;
static struct bulk_info peer_buf;
static struct dev_get bulk;
static struct iovec bulk_iov[2];
static bool bulk_open, bulk_is_put;
static size_t bulk_off;
static uint32_t get_cnt, put_cnt;

void bulk_make_buffers(void)
{
	struct bulk_info own;
	size_t i;

	buf = malloc(BUF_LEN);
	local = calloc(1, BUF_LEN);
	for (i = 0; i < BUF_LEN; i++)
		buf[i] = pair_pattern(99, i);
	CHECK(!ops->mem_reg(dev, buf, BUF_LEN, DEV_MEM_REMOTE_READ | DEV_MEM_REMOTE_WRITE,
			    &buf_mem));
	CHECK(!ops->mem_reg(dev, local, BUF_LEN, DEV_MEM_LOCAL, &local_mem));
	own = (struct bulk_info){ (uintptr_t)buf, buf_mem->remote_key };
	pair_tell(&own, sizeof(own));
	pair_hear(&peer_buf, sizeof(peer_buf));
}

void bulk_check_memory(void)
{
	const unsigned data = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;

	/* Writes of peers are placed in order. */
	CHECK(reg_seen_access(buf) ==
	      (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
	CHECK(reg_seen_access(local) == data);
}

void bulk_done(void)
{
	size_t i;

	CHECK(bulk_open && !bulk.status);
	bulk_open = false;
	if (bulk_is_put) {
		put_cnt++;
		return;
	}
	for (i = 0; i < bulk.len; i++)
		CHECK(local[i] == pair_pattern(99, bulk_off + i));
	get_cnt++;
}

static void bulk_begin(void)
{
	unsigned first = is_broken ? BREAKS : 0;
	struct dev_link *link = ends[first + pair_rand() % (links - first)].link;
	size_t params = BUF_LEN / 2, len = 1 + pair_rand() % params, cut = pair_rand() % len, i;
	int ret;

	bulk_is_put = (link->caps & DEV_CAP_PUT) && get_cnt > put_cnt;
	bulk_off = pair_rand() % (params - len + 1) + (bulk_is_put ? params : 0);
	for (i = 0; i < len; i++)
		local[i] = bulk_is_put ? pair_pattern(77, bulk_off + i) : 0;
	bulk_iov[0] = (struct iovec){ local, cut };
	bulk_iov[1] = (struct iovec){ local + cut, len - cut };
	bulk = (struct dev_get){
		.remote_addr = peer_buf.addr + bulk_off,
		.remote_key = peer_buf.key,
		.iov = bulk_iov,
		.iov_cnt = 2,
		.len = len,
		.mem = { local_mem, local_mem },
	};
	ret = bulk_is_put ? link->ops->put(link, &bulk) : link->ops->get(link, &bulk);
	CHECK(ret == 0 || ret == 1 || ret == -FI_EAGAIN);
	bulk_open = ret >= 0;
	if (ret == 1)
		bulk_done();
}

/* Bytes of the peer's puts have its pattern, all others this side's. */
void bulk_check_puts(void)
{
	size_t i, theirs = 0;

	for (i = 0; i < BUF_LEN; i++) {
		bool put = buf[i] == pair_pattern(77, i);

		CHECK(put || buf[i] == pair_pattern(99, i));
		CHECK(!put || i >= BUF_LEN / 2);
		theirs += put;
	}
	CHECK(theirs > BUF_LEN / 8);
}

void bulk_start(void)
{
	if (!bulk_open && get_cnt + put_cnt < BULK_OPS && !(pair_rand() & 7))
		bulk_begin();
}

bool bulk_is_over(void)
{
	return !bulk_open && get_cnt + put_cnt >= BULK_OPS;
}

void bulk_report(void)
{
	printf("side %d: %u gets, %u puts\n", side, get_cnt, put_cnt);
}

void bulk_free(void)
{
	ops->mem_dereg(dev, buf_mem);
	ops->mem_dereg(dev, local_mem);
	free(buf);
	free(local);
}
