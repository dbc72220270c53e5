/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Calls of fi_msg(3) on datagram endpoints over UDP. */
#include <criterion/criterion.h>
#include <rdma/fi_ext_copyrpc.h>
#include <string.h>

#include "ofi/dgram/cpr_dgram.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/param.h"

static struct ofi_pair p;
static char in[64];
static char out[64] = "what the sender has in its buffer";

static void open_pair(struct ofi_options opts)
{
	ofi_provider();
	util_params.paths = "shm,udp";
	opts.ep_type = FI_EP_DGRAM;
	ofi_pair_open(&p, &opts);
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

TestSuite(cpr_dgram_msg, .fini = teardown);

#define EXPECT_ARRIVES(send, has_comp)                                                             \
	do {                                                                                       \
		struct fi_cq_tagged_entry arr = { 0 };                                             \
		memset(in, 0, sizeof(in));                                                         \
		cr_assert_eq(fi_recv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);       \
		cr_assert_eq(send, 0);                                                             \
		if (has_comp) {                                                                    \
			cr_assert_eq(ofi_read(p.cq[0], &arr), 1);                                  \
			cr_expect_eq(arr.flags, FI_SEND | FI_MSG);                                 \
		}                                                                                  \
		cr_assert_eq(ofi_read(p.cq[1], &arr), 1);                                          \
		cr_expect_eq(arr.op_context, in);                                                  \
		cr_expect_eq(arr.len, 20);                                                         \
		cr_expect_arr_eq(in, out, 20);                                                     \
		cr_expect_eq(arr.flags, FI_RECV | FI_MSG);                                         \
	} while (0)

Test(cpr_dgram_msg, every_send_call_arrives)
{
	struct iovec iov[2] = { { out, 7 }, { out + 7, 13 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2 };

	open_pair((struct ofi_options){ 0 });
	msg.addr = p.addr[1];
	EXPECT_ARRIVES(fi_send(p.ep[0], out, 20, NULL, p.addr[1], NULL), true);
	EXPECT_ARRIVES(fi_sendv(p.ep[0], iov, NULL, 2, p.addr[1], NULL), true);
	EXPECT_ARRIVES(fi_sendmsg(p.ep[0], &msg, FI_COMPLETION), true);
	EXPECT_ARRIVES(fi_sendmsg(p.ep[0], &msg, FI_INJECT | FI_TRANSMIT_COMPLETE), true);
	EXPECT_ARRIVES(fi_inject(p.ep[0], out, 20, p.addr[1]), false);
}

Test(cpr_dgram_msg, completions_have_a_source_address)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t src = FI_ADDR_UNSPEC;
	ssize_t ret;

	open_pair((struct ofi_options){ .caps = FI_MSG | FI_SOURCE });
	cr_assert_eq(fi_recv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_inject(p.ep[0], out, 1, p.addr[1]), 0);
	do {
		ret = fi_cq_readfrom(p.cq[1], &e, 1, &src);
	} while (ret == -FI_EAGAIN);
	cr_assert_eq(ret, 1);
	cr_expect_eq(src, p.addr[0]);
}

Test(cpr_dgram_msg, calls_that_are_not_offered_are_refused)
{
	struct fi_copyrpc_ops *rpc;
	struct iovec iov[5] = { { out, 1 }, { out, 1 }, { out, 1 }, { out, 1 }, { out, 1 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 1 };

	open_pair((struct ofi_options){ 0 });
	msg.addr = p.addr[1];
	cr_expect_eq(fi_copyrpc_open(&p.domain->fid, &rpc), -FI_ENOSYS);
	cr_expect_eq(fi_copyrpc_open(&p.ep[0]->fid, &rpc), -FI_ENOSYS);
	cr_expect_eq(fi_senddata(p.ep[0], out, 1, NULL, 7, p.addr[1], NULL), -FI_ENOSYS);
	cr_expect_eq(fi_injectdata(p.ep[0], out, 1, 7, p.addr[1]), -FI_ENOSYS);
	cr_expect_eq(fi_tsend(p.ep[0], out, 1, NULL, p.addr[1], 7, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_sendmsg(p.ep[0], &msg, FI_REMOTE_CQ_DATA), -FI_EBADFLAGS);
	cr_expect_eq(fi_sendmsg(p.ep[0], &msg, FI_DELIVERY_COMPLETE), -FI_EBADFLAGS);
	cr_expect_eq(fi_sendmsg(p.ep[0], &msg, FI_MATCH_COMPLETE), -FI_EBADFLAGS);
	cr_expect_eq(fi_recvmsg(p.ep[0], &msg, FI_PEEK), -FI_EBADFLAGS);
	cr_expect_eq(fi_sendv(p.ep[0], iov, NULL, 5, p.addr[1], NULL), -FI_EINVAL);
	cr_expect_eq(fi_recvv(p.ep[0], iov, NULL, 5, p.addr[1], NULL), -FI_EINVAL);
	msg.iov_count = 2;
	cr_expect_eq(fi_recvmsg(p.ep[0], &msg, FI_MULTI_RECV), -FI_EINVAL);
}

Test(cpr_dgram_msg, the_largest_message_arrives_and_one_byte_more_is_refused)
{
	static char big_out[1 << 16], big_in[1 << 16];
	struct fi_cq_tagged_entry e;
	size_t max;

	open_pair((struct ofi_options){ 0 });
	max = p.info->ep_attr->max_msg_size;
	memset(big_out, 0x5A, sizeof(big_out));
	cr_assert_lt(max, sizeof(big_in));
	cr_assert_eq(fi_recv(p.ep[1], big_in, sizeof(big_in), NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_expect_eq(fi_send(p.ep[0], big_out, max + 1, NULL, p.addr[1], NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_inject(p.ep[0], big_out, max + 1, p.addr[1]), -FI_EMSGSIZE);
	cr_assert_eq(fi_send(p.ep[0], big_out, max, NULL, p.addr[1], NULL), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.len, max);
	cr_expect_eq(memcmp(big_in, big_out, max), 0);
}

Test(cpr_dgram_msg, vectors_whose_sum_overflows_are_refused)
{
	struct iovec iov[2] = { { out, SIZE_MAX - 9 }, { out, 20 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2 };

	open_pair((struct ofi_options){ 0 });
	msg.addr = p.addr[1];
	cr_expect_eq(fi_sendv(p.ep[0], iov, NULL, 2, p.addr[1], NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_sendmsg(p.ep[0], &msg, 0), -FI_EMSGSIZE);
	cr_expect_eq(fi_sendmsg(p.ep[0], &msg, FI_INJECT), -FI_EMSGSIZE);
	cr_expect_eq(fi_recvv(p.ep[0], iov, NULL, 2, FI_ADDR_UNSPEC, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_recvmsg(p.ep[0], &msg, 0), -FI_EMSGSIZE);
}

Test(cpr_dgram_msg, a_message_wakes_a_sleeper)
{
	struct fi_cq_tagged_entry e;

	open_pair((struct ofi_options){ .wait_obj = FI_WAIT_FD });
	cr_assert_eq(fi_recv(p.ep[1], in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	cr_expect_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, 1), -FI_EAGAIN);
	cr_assert_eq(fi_inject(p.ep[0], out, 20, p.addr[1]), 0);
	cr_assert_eq(fi_cq_sread(p.cq[1], &e, 1, NULL, 30000), 1);
	cr_expect_eq(e.len, 20);
}

Test(cpr_dgram_msg, with_a_prefix_every_send_call_arrives_behind_it)
{
	static char far_out[40 + 20], far_in[40 + 64];
	struct iovec iov[2] = { { far_out, 40 }, { out, 20 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2 };
	struct fi_cq_tagged_entry e;

	open_pair((struct ofi_options){ .mode = FI_MSG_PREFIX });
	msg.addr = p.addr[1];
	memcpy(far_out + 40, out, 20);
	for (int way = 0; way < 4; way++) {
		memset(far_in, 0, sizeof(far_in));
		cr_assert_eq(fi_recv(p.ep[1], far_in, sizeof(far_in), NULL, FI_ADDR_UNSPEC, in), 0);
		if (way == 0)
			cr_assert_eq(fi_send(p.ep[0], far_out, 60, NULL, p.addr[1], NULL), 0);
		if (way == 1)
			cr_assert_eq(fi_sendv(p.ep[0], iov, NULL, 2, p.addr[1], NULL), 0);
		if (way == 2)
			cr_assert_eq(fi_sendmsg(p.ep[0], &msg, FI_COMPLETION), 0);
		if (way == 3)
			cr_assert_eq(fi_inject(p.ep[0], far_out, 60, p.addr[1]), 0);
		cr_assert_eq(ofi_read(p.cq[1], &e), 1);
		cr_expect_eq(e.len, 60);
		cr_expect_arr_eq(far_in + 40, out, 20);
	}
}

Test(cpr_dgram_msg, a_prefix_is_required_and_not_part_of_limits)
{
	static char big_out[1 << 16], big_in[1 << 16];
	struct fi_cq_tagged_entry e;
	size_t max;

	open_pair((struct ofi_options){ .mode = FI_MSG_PREFIX });
	max = p.info->ep_attr->max_msg_size + 40;
	cr_assert_eq(fi_recv(p.ep[1], big_in, max, NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_expect_eq(fi_send(p.ep[0], big_out, max + 1, NULL, p.addr[1], NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_inject(p.ep[0], big_out, max + 1, p.addr[1]), -FI_EMSGSIZE);
	cr_expect_eq(fi_send(p.ep[0], big_out, 39, NULL, p.addr[1], NULL), -FI_EINVAL);
	cr_expect_eq(fi_recv(p.ep[0], big_in, 39, NULL, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	cr_assert_eq(fi_inject(p.ep[0], big_out, max, p.addr[1]), 0);
	cr_assert_eq(ofi_read(p.cq[1], &e), 1);
	cr_expect_eq(e.len, max);
}
