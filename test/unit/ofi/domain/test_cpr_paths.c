/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_COPYRPC_PATHS on machines with different devices (cpr_paths.c). */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "ofi/domain/cpr_paths.h"

static int nics; /* bit i: NIC i is present */

static int nic0_probe(struct dev_about *about)
{
	*about = (struct dev_about){ .name = "nic0" };
	return nics & 1 ? 0 : -FI_ENODEV;
}

static int nic1_probe(struct dev_about *about)
{
	*about = (struct dev_about){ .name = "nic1" };
	return nics & 2 ? 0 : -FI_ENODEV;
}

static bool no_memory; /* the system refuses shared memory */

static int memory_probe(struct dev_about *about)
{
	return no_memory ? -FI_ENOSYS : 0;
}

static const struct eng_transport_ops memory = { .path = 1, .probe = memory_probe };
static const struct eng_transport_ops nic0 = { .path = 2, .probe = nic0_probe };
static const struct eng_transport_ops nic1 = { .path = 2, .probe = nic1_probe };
static const struct eng_transport_ops always = { .path = 4 };
static const struct eng_transport_ops *const shm[] = { &memory, NULL };
static const struct eng_transport_ops *const nic[] = { &nic0, &nic1, NULL };
static const struct eng_transport_ops *const second[] = { &nic1, NULL };
static const struct eng_transport_ops *const sure[] = { &always, NULL };
static const struct eng_transport_ops *const missing[] = { NULL };
static const struct cpr_path table[] = {
	{ "shm", shm },   { "nic", nic },         { "second", second },
	{ "sure", sure }, { "missing", missing }, { 0 },
};

static struct cpr_paths paths;

static int get(const char *text)
{
	memset(&paths, 0xFF, sizeof(paths));
	return cpr_paths_read(table, text, false, &paths);
}

/** Expects exactly these transports. */
static void expect_transports(const struct eng_transport_ops *a, const struct eng_transport_ops *b,
			      const struct eng_transport_ops *c)
{
	const struct eng_transport_ops *want[] = { a, b, c };
	uint32_t cnt = c ? 3 : b ? 2 : a ? 1 : 0;

	cr_assert_eq(paths.transports.cnt, cnt);
	for (uint32_t i = 0; i < cnt; i++)
		cr_expect_eq(paths.transports.ops[i], want[i]);
}

Test(cpr_paths, paths_without_devices_are_always_present)
{
	cr_assert_eq(get("shm"), 0);
	expect_transports(&memory, NULL, NULL);
	cr_expect_null(paths.nic);
	cr_assert_eq(get("sure,shm"), 0);
	expect_transports(&always, &memory, NULL);
}

Test(cpr_paths, shared_memory_that_the_system_refuses_is_left_out)
{
	no_memory = true;
	cr_assert_eq(get("shm,sure"), 0);
	expect_transports(&always, NULL, NULL);
	cr_expect_eq(get("shm"), -FI_ENODEV);
}

Test(cpr_paths, one_of_several_paths_may_be_missing)
{
	cr_assert_eq(get("shm,nic,missing"), 0);
	expect_transports(&memory, NULL, NULL);
	nics = 3;
	cr_assert_eq(get("nic,shm"), 0);
	expect_transports(&nic0, &nic1, &memory);
}

Test(cpr_paths, the_first_nic_present_is_reported)
{
	nics = 3;
	cr_assert_eq(get("second,nic"), 0);
	expect_transports(&nic1, &nic0, NULL);
	cr_expect_eq(paths.nic, &nic1);
	cr_expect_str_eq(paths.about.name, "nic1");
	nics = 2;
	cr_assert_eq(get("shm,nic"), 0);
	expect_transports(&memory, &nic1, NULL);
	cr_expect_eq(paths.nic, &nic1);
}

Test(cpr_paths, naming_one_twice_changes_nothing)
{
	nics = 3;
	cr_assert_eq(get("shm,nic,shm,second,nic,shm"), 0);
	expect_transports(&memory, &nic0, &nic1);
}

Test(cpr_paths, malformed_lists_of_paths_are_refused)
{
	static const char *const no[] = { "",     ",",   "shm,",    ",shm", "shm,,nic", "sh",
					  "shmm", "SHM", "shm nic", " shm", "shm, nic", "udp" };

	for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		cr_expect_eq(get(no[i]), -FI_EINVAL, "\"%s\"", no[i]);
}

Test(cpr_paths, a_path_alone_without_a_device_is_an_error)
{
	cr_expect_eq(get("nic"), -FI_ENODEV);
	cr_expect_eq(get("second,missing"), -FI_ENODEV);
	nics = 1;
	cr_expect_eq(get("nic"), 0);
	cr_expect_eq(get("second"), -FI_ENODEV);
}
