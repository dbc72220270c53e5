/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* info->nic (fi_nic(3)). */
#include "ofi/base/cpr_nic.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

static const struct dev_about known = {
	.name = "mlx5_0",
	.version = "28.35.2000",
	.state = "active",
	.link = "Ethernet",
	.addr = "::ffff:10.1.2.3",
	.pci = "0000:3b:00.1",
	.vendor_id = 0x2c9,
	.device_id = 0x101b,
	.mtu = 4096,
	.speed = 100000000000,
};

static void expect_known(const struct fid_nic *nic)
{
	const struct fi_pci_attr *pci = &nic->bus_attr->attr.pci;

	cr_expect_eq(nic->fid.fclass, FI_CLASS_NIC);
	cr_expect_str_eq(nic->device_attr->name, "mlx5_0");
	cr_expect_str_eq(nic->device_attr->firmware, "28.35.2000");
	cr_expect_str_eq(nic->device_attr->device_id, "0x101b");
	cr_expect_str_eq(nic->device_attr->vendor_id, "0x02c9");
	cr_expect_str_eq(nic->device_attr->driver, "mlx5");
	cr_expect_eq(nic->bus_attr->bus_type, FI_BUS_PCI);
	cr_expect_eq(pci->domain_id, 0);
	cr_expect_eq(pci->bus_id, 0x3b);
	cr_expect_eq(pci->device_id, 0);
	cr_expect_eq(pci->function_id, 1);
	cr_expect_str_eq(nic->link_attr->address, "::ffff:10.1.2.3");
	cr_expect_str_eq(nic->link_attr->network_type, "Ethernet");
	cr_expect_eq(nic->link_attr->mtu, 4096);
	cr_expect_eq(nic->link_attr->speed, 100000000000);
	cr_expect_eq(nic->link_attr->state, FI_LINK_UP);
}

Test(cpr_nic, attributes_of_a_device_are_reported)
{
	struct fid_nic *nic;

	cr_assert_eq(cpr_nic_make(&known, "mlx5", &nic), 0);
	expect_known(nic);
	cr_expect_eq(fi_close(&nic->fid), 0);
}

Test(cpr_nic, each_copy_of_an_info_owns_a_nic)
{
	struct fi_info *info = fi_allocinfo(), *dup;

	cr_assert_eq(cpr_nic_make(&known, "mlx5", &info->nic), 0);
	dup = fi_dupinfo(info);
	cr_assert(dup && dup->nic && dup->nic != info->nic);
	fi_freeinfo(info);
	expect_known(dup->nic);
	cr_expect_eq(fi_control(&dup->nic->fid, FI_GETWAIT, &info), -FI_ENOSYS);
	fi_freeinfo(dup);
}

Test(cpr_nic, missing_attributes_are_null)
{
	struct dev_about nothing = { .name = "rxe0" };
	struct fid_nic *nic;

	cr_assert_eq(cpr_nic_make(&nothing, "verbs", &nic), 0);
	cr_assert(nic->bus_attr && nic->link_attr, "readers check nothing");
	cr_expect_eq(nic->bus_attr->bus_type, FI_BUS_UNKNOWN);
	cr_expect_eq(nic->link_attr->state, FI_LINK_UNKNOWN);
	cr_expect_null(nic->link_attr->address);
	cr_expect_null(nic->device_attr->firmware);
	cr_expect_eq(fi_close(&nic->fid), 0);
}

Test(cpr_nic, printing_appends_to_the_buffer)
{
	char buf[2048] = "before\n";
	struct fid_nic *nic;

	cr_assert_eq(cpr_nic_make(&known, "mlx5", &nic), 0);
	cr_expect_eq(nic->fid.ops->tostr(&nic->fid, buf, sizeof(buf) - strlen(buf)), 0);
	cr_expect_eq(strncmp(buf, "before\n    nic:", 15), 0);
	cr_expect(strstr(buf, "name: mlx5_0"));
	cr_expect(strstr(buf, "PCI 0000:3b:00.1"));
	cr_expect_eq(nic->fid.ops->tostr(&nic->fid, buf, 0), 0, "no room");
	fi_close(&nic->fid);
}
