/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tests without an RDMA device. test/rxe opens one. */
#include "dev/ib/ib_dev.h"

#include <criterion/criterion.h>
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
