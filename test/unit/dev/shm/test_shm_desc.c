/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_desc.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shm_pair.h"

TestSuite(shm_desc, .fini = pair_fini, .timeout = 200);

static struct shm_dev *dev;
static struct dev_link *end;
static struct dev_desc good;

static void setup(void)
{
	dev = pair_dev();
	end = pair_half(dev, 4096, &good);
}

static int parse(const struct dev_desc *desc)
{
	struct shm_desc out;

	return shm_desc_parse(desc, &out);
}

/* Expects `good` with one field changed to be refused. */
#define REFUSES(field, value)                                                                      \
	do {                                                                                       \
		struct dev_desc bad = good;                                                        \
		struct shm_desc d;                                                                 \
		memcpy(&d, bad.bytes, sizeof(d));                                                  \
		d.field = value;                                                                   \
		memcpy(bad.bytes, &d, sizeof(d));                                                  \
		cr_expect_eq(parse(&bad), -FI_EINVAL, #field " = " #value);                        \
	} while (0)

Test(shm_desc, a_filled_description_is_accepted, .init = setup)
{
	struct shm_desc out;

	cr_assert_eq(shm_desc_parse(&good, &out), 0);
	cr_expect_eq(good.fd_cnt, SHM_FD_CNT);
	cr_expect_eq(out.rx_len, 4096);
	cr_expect_eq(out.pid, getpid());
	cr_expect_eq(good.pid, getpid());
	cr_expect_eq(out.link_id, ((struct shm_link *)end)->id);
}

Test(shm_desc, descriptors_are_duplicates, .init = setup)
{
	struct shm_link *link = (struct shm_link *)end;

	cr_expect_neq(good.fds[SHM_FD_SEG], link->seg_fd);
	pair_desc_close(&good);
	cr_expect_eq(shm_seg_check(link->seg_fd, shm_seg_len(4096)), 0);
	cr_expect_eq(shm_bell_check(dev->bell.write_fd), 0);
}

Test(shm_desc, every_wrong_field_is_refused, .init = setup)
{
	REFUSES(magic, 0);
	REFUSES(version, 0);
	REFUSES(version, SHM_DESC_VERSION - 1);
	REFUSES(version, SHM_DESC_VERSION + 1);
	REFUSES(flags, 2);
	REFUSES(flags, 0x8001);
	REFUSES(rx_len, 0);
	REFUSES(rx_len, 512);
	REFUSES(rx_len, 4095);
	REFUSES(rx_len, 8192);
	REFUSES(rx_len, 1ull << 31);
	REFUSES(rx_len, 1ull << 63);
	REFUSES(link_id, SHM_LINKS_MAX);
	REFUSES(link_id, UINT32_MAX);
	REFUSES(pid, 0);
	REFUSES(pid, -1);
	REFUSES(reserved[0], 1);
	REFUSES(reserved[1], 1ull << 63);
}

Test(shm_desc, wrong_length_or_number_of_descriptors_is_refused, .init = setup)
{
	struct dev_desc bad = good;

	for (bad.len = 0; bad.len < 100; bad.len++)
		cr_expect_eq(parse(&bad), bad.len == sizeof(struct shm_desc) ? 0 : -FI_EINVAL);
	bad = good;
	for (bad.fd_cnt = 0; bad.fd_cnt < SHM_FD_CNT; bad.fd_cnt++)
		cr_expect_eq(parse(&bad), -FI_EINVAL);
	bad.fd_cnt = SHM_FD_CNT + 1;
	cr_expect_eq(parse(&bad), -FI_EINVAL);
}

Test(shm_desc, descriptors_in_another_order_are_refused, .init = setup)
{
	static const int perm[5][3] = {
		{ 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 }
	};
	struct dev_desc bad = good;
	int i, k;

	for (i = 0; i < 5; i++) {
		for (k = 0; k < 3; k++)
			bad.fds[k] = good.fds[perm[i][k]];
		cr_expect_eq(parse(&bad), -FI_EINVAL, "order %d", i);
	}
}

Test(shm_desc, random_bytes_are_harmless, .init = setup)
{
	uint64_t seed = 0x5eed0001, r;
	int i, k, refused = 0;

	for (i = 0; i < 3000; i++) {
		struct shm_dev *other = pair_dev();
		struct dev_desc bad = good, mine;
		struct dev_link *link = pair_half(other, 1024, &mine);

		for (k = 0; k <= i % 4; k++) {
			r = pair_rand(&seed);
			bad.bytes[r % sizeof(struct shm_desc)] ^= (uint8_t)(1u << (r >> 32) % 8);
		}
		refused += link->ops->connect(link, &bad) != 0;
		pair_desc_close(&mine);
		pair_link_close(link);
		pair_dev_close(other);
	}
	cr_expect_gt(refused, 1000);
}

Test(shm_desc, a_refused_connect_leaves_nothing_and_can_be_repeated, .init = setup)
{
	struct shm_dev *other = pair_dev();
	struct dev_desc bad = good, mine;
	struct dev_link *link = pair_half(other, 1024, &mine);
	int before = pair_fd_cnt();

	bad.fds[SHM_FD_BELL] = good.fds[SHM_FD_SEG];
	cr_expect_eq(link->ops->connect(link, &bad), -FI_EINVAL);
	cr_expect_eq(pair_fd_cnt(), before);
	cr_expect_eq(link->ops->connect(link, &good), 0);
}

Test(shm_desc, no_descriptor_left_is_an_error_that_leaves_nothing, .init = setup)
{
	struct dev_desc desc = { 0 };
	struct rlimit lim;
	int before = pair_fd_cnt(), next = dup(0);

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	close(next);
	lim.rlim_cur = (rlim_t)next + 2; /* room for two of the three */
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	cr_expect_eq(end->ops->describe(end, &desc), -FI_EMFILE);
	cr_expect_eq(desc.fd_cnt, 0);
	cr_expect_eq(pair_fd_cnt(), before);
}
