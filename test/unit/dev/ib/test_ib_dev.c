/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests without an RDMA device. test/rxe opens one. */
#include "dev/ib/ib_dev.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/param.h"

static bool fits_none(struct ibv_device *device)
{
	return false;
}

/* Returns the bytes that `what` and its libraries write to standard error. */
static long noise(int (*what)(void), int *ret)
{
	FILE *sink = tmpfile();
	int saved = dup(STDERR_FILENO);
	long len;

	cr_assert(sink && saved >= 0);
	fflush(stderr);
	dup2(fileno(sink), STDERR_FILENO);
	*ret = what();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	fseek(sink, 0, SEEK_END);
	len = ftell(sink);
	fclose(sink);
	return len;
}

static int probe_none(void)
{
	struct dev_about about;

	return ib_dev_probe(fits_none, &about);
}

static int open_none(void)
{
	struct ib_dev dev;

	return ib_dev_init(&dev, fits_none, NULL);
}

Test(ib_dev, without_a_fitting_device_probe_and_open_fail_silently)
{
	int ret;

	cr_expect_eq(noise(probe_none, &ret), 0);
	cr_expect_eq(ret, -FI_ENODEV);
	cr_expect_eq(noise(open_none, &ret), 0);
	cr_expect_eq(ret, -FI_ENODEV);
}

Test(ib_dev, an_unknown_device_cannot_be_opened)
{
	struct dev_about about;
	struct ib_dev dev;

	util_params.device = "no_such_device";
	cr_expect_eq(ib_dev_init(&dev, NULL, NULL), -FI_ENODEV);
	cr_expect_eq(ib_dev_probe(NULL, &about), -FI_ENODEV);
	util_params.device = "no_such_device:";
	cr_expect_eq(ib_dev_init(&dev, NULL, NULL), -FI_EINVAL);
}

Test(ib_dev, a_refusal_by_the_device_keeps_its_reason)
{
	static const struct {
		int err, ret;
	} rows[] = { { ENOMEM, -FI_ENOMEM }, { EMFILE, -FI_EMFILE }, { ENFILE, -FI_EMFILE },
		     { EINVAL, -FI_EIO },    { EPERM, -FI_EIO },     { 0, -FI_EIO } };
	struct ib_dev dev = { .name = "nic" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = rows[i].err;
		cr_expect_eq(ib_dev_refuse(&dev, "thing"), rows[i].ret, "errno %d", rows[i].err);
	}
}

/* ---- GIDs of a port that change: libibverbs' functions, replaced while gid_cnt is not 0 ---- */

static struct ibv_gid_entry gids[8];
static size_t gid_cnt;

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t num, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	int (*real)(struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t,
		    size_t) = dlsym(RTLD_NEXT, "_ibv_query_gid_ex");

	if (!gid_cnt)
		return real(context, num, index, entry, flags, entry_size);
	for (size_t i = 0; i < gid_cnt; i++)
		if (gids[i].gid_index == index && gids[i].port_num == num) {
			*entry = gids[i];
			return 0;
		}
	return ENODATA;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t entry_size)
{
	ssize_t (*real)(struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t) =
		dlsym(RTLD_NEXT, "_ibv_query_gid_table");

	if (!gid_cnt)
		return real(context, entries, max, flags, entry_size);
	memcpy(entries, gids, gid_cnt * sizeof(gids[0]));
	return (ssize_t)gid_cnt;
}

/* Returns the entry of port 1 for 10.0.0.`host` (0: for a link-local address). */
static struct ibv_gid_entry gid_at(uint32_t index, uint8_t host, uint32_t type)
{
	struct ibv_gid_entry e = { .gid_index = index, .port_num = 1, .gid_type = type };

	memcpy(e.gid.raw,
	       host ? (uint8_t[16]){ [10] = 0xff, 0xff, 10, 0, 0, host }
		    : (uint8_t[16]){ 0xfe, 0x80, [15] = 1 },
	       16);
	return e;
}

/* Gives the port two GIDs, and another port one. */
static void put_gids(struct ibv_gid_entry a, struct ibv_gid_entry b)
{
	gids[0] = a;
	gids[1] = b;
	gids[2] = gid_at(0, 7, IBV_GID_TYPE_ROCE_V2);
	gids[2].port_num = 2;
	gid_cnt = 3;
}

static void expect_gid(const struct ib_dev *dev, uint32_t index, uint8_t host)
{
	struct ibv_gid_entry e = gid_at(0, host, 0);
	struct ib_dev_gid now = ib_dev_gid(dev);

	cr_expect_eq(now.index, index, "%u", now.index);
	cr_expect_not(memcmp(&now.gid, &e.gid, sizeof(e.gid)), "index %u", index);
}

Test(ib_dev, new_connections_use_a_gid_that_the_port_has)
{
	const struct ibv_gid_entry v1 = gid_at(2, 1, IBV_GID_TYPE_ROCE_V1);
	struct verbs_context verbs = { .sz = sizeof(verbs) };
	struct ib_dev dev = { .ctx = &verbs.context,
			      .port = 1,
			      .is_eth = true,
			      .gid = v1.gid,
			      .gid_type = IBV_GID_TYPE_ROCE_V2,
			      .gid_index = 3 };

	put_gids(v1, gid_at(3, 1, IBV_GID_TYPE_ROCE_V2));
	expect_gid(&dev, 3, 1);
	put_gids(gid_at(3, 9, IBV_GID_TYPE_ROCE_V2), gid_at(5, 1, IBV_GID_TYPE_ROCE_V2));
	expect_gid(&dev, 5, 1); /* removed, and added again */
	put_gids(gid_at(1, 0, IBV_GID_TYPE_ROCE_V2), gid_at(4, 9, IBV_GID_TYPE_ROCE_V2));
	expect_gid(&dev, 4, 9); /* another address */
	put_gids(v1, gid_at(1, 0, IBV_GID_TYPE_ROCE_V2));
	expect_gid(&dev, 3, 1); /* none of its kind: it may come back */
	dev.is_gid_fixed = true;
	put_gids(gid_at(3, 9, IBV_GID_TYPE_ROCE_V2), gid_at(5, 1, IBV_GID_TYPE_ROCE_V2));
	expect_gid(&dev, 3, 9); /* the user requested this index */
	dev.is_eth = false;
	expect_gid(&dev, 3, 1);
	gid_cnt = 0;
}

static struct ibv_port_attr port;
static int port_err;

static int query_port(struct ibv_context *context, uint8_t num, struct ibv_port_attr *attr,
		      size_t len)
{
	memcpy(attr, &port, len < sizeof(port) ? len : sizeof(port));
	return port_err;
}

Test(ib_dev, a_port_with_another_lid_has_moved)
{
	struct verbs_context verbs = {
		.sz = sizeof(verbs),
		.query_port = query_port,
		.context.abi_compat = __VERBS_ABI_IS_EXTENDED,
	};
	struct ib_dev dev = { .ctx = &verbs.context, .port = 1, .port_attr.lid = 7 };

	port.lid = 7;
	cr_expect_not(ib_dev_has_moved(&dev));
	port.lid = 0;
	cr_expect_not(ib_dev_has_moved(&dev), "it has none for a moment");
	port.lid = 8;
	cr_expect(ib_dev_has_moved(&dev));
	port_err = ENODEV;
	cr_expect_not(ib_dev_has_moved(&dev), "nothing is known");
	port_err = 0;
	dev.is_eth = true;
	cr_expect_not(ib_dev_has_moved(&dev), "no LID");
}

Test(ib_dev, repeated_probes_leak_no_descriptor)
{
	struct dev_about about;
	int before = dup(0), after;

	close(before);
	for (int i = 0; i < 50; i++)
		ib_dev_probe(fits_none, &about);
	after = dup(0);
	close(after);
	cr_expect_eq(before, after);
}
