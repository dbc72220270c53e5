/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Description of a device in fi_info: see cpr_nic.h. */
#include "ofi/base/cpr_nic.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/base/cpr_fid.h"
#include "util/bits.h"

#define CPR_NIC_ID_LEN 16

/* One allocation; the pointers of `fid` and its attributes lead into this struct. */
struct cpr_nic {
	struct fid_nic fid;
	struct fi_device_attr device;
	struct fi_bus_attr bus;
	struct fi_link_attr link;
	struct dev_about about;
	char driver[CPR_NIC_ID_LEN];
	char device_id[CPR_NIC_ID_LEN];
	char vendor_id[CPR_NIC_ID_LEN];
};

static int cpr_nic_close(struct fid *fid)
{
	free(UTIL_CONTAINER_OF(fid, struct cpr_nic, fid.fid));
	return 0;
}

static int cpr_nic_control(struct fid *fid, int command, void *arg)
{
	const struct cpr_nic *nic = UTIL_CONTAINER_OF(fid, struct cpr_nic, fid.fid);

	if (command != FI_DUP)
		return -FI_ENOSYS;
	return arg ? cpr_nic_make(&nic->about, nic->driver, arg) : -FI_EINVAL;
}

static const char *cpr_nic_text(const char *text)
{
	return text ? text : "(unknown)";
}

/* Appends the text, as libfabric's own printing does; `len` is what is left of the buffer. */
static int cpr_nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct cpr_nic *nic = UTIL_CONTAINER_OF(fid, struct cpr_nic, fid.fid);
	const struct fi_pci_attr *pci = &nic->bus.attr.pci;
	char place[32] = "unknown";

	if (nic->bus.bus_type == FI_BUS_PCI)
		snprintf(place, sizeof(place), "PCI %04x:%02x:%02x.%x", pci->domain_id, pci->bus_id,
			 pci->device_id, pci->function_id);
	snprintf(buf + strlen(buf), len,
		 "    nic:\n"
		 "        fi_device_attr:\n"
		 "            name: %s\n            device_id: %s\n            vendor_id: %s\n"
		 "            driver: %s\n            firmware: %s\n"
		 "        fi_bus_attr:\n            bus_type: %s\n"
		 "        fi_link_attr:\n"
		 "            address: %s\n            mtu: %zu\n            speed: %zu\n"
		 "            state: %s\n            network_type: %s\n",
		 cpr_nic_text(nic->device.name), nic->device.device_id, nic->device.vendor_id,
		 nic->device.driver, cpr_nic_text(nic->device.firmware), place,
		 cpr_nic_text(nic->link.address), nic->link.mtu, nic->link.speed,
		 nic->link.state == FI_LINK_UP ? "FI_LINK_UP" : "FI_LINK_UNKNOWN",
		 cpr_nic_text(nic->link.network_type));
	return 0;
}

static struct fi_ops cpr_nic_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = cpr_nic_close,
	.bind = cpr_no_bind,
	.control = cpr_nic_control,
	.ops_open = cpr_no_ops_open,
	.tostr = cpr_nic_tostr,
};

/* Returns NULL for an empty string: fi_nic(3) uses NULL for an unknown value. */
static char *cpr_nic_known(char *text)
{
	return *text ? text : NULL;
}

static void cpr_nic_fill_device(struct cpr_nic *nic, const char *driver)
{
	snprintf(nic->driver, sizeof(nic->driver), "%s", driver);
	snprintf(nic->device_id, sizeof(nic->device_id), "0x%04x", nic->about.device_id);
	snprintf(nic->vendor_id, sizeof(nic->vendor_id), "0x%04x", nic->about.vendor_id);
	nic->device.name = cpr_nic_known(nic->about.name);
	nic->device.device_id = nic->device_id;
	nic->device.vendor_id = nic->vendor_id;
	nic->device.driver = nic->driver;
	nic->device.firmware = cpr_nic_known(nic->about.version);
}

static void cpr_nic_fill_bus(struct cpr_nic *nic)
{
	struct fi_pci_attr *pci = &nic->bus.attr.pci;
	unsigned domain, bus, device, function;

	if (sscanf(nic->about.pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return;
	nic->bus.bus_type = FI_BUS_PCI;
	pci->domain_id = (uint16_t)domain;
	pci->bus_id = (uint8_t)bus;
	pci->device_id = (uint8_t)device;
	pci->function_id = (uint8_t)function;
}

static void cpr_nic_fill_link(struct cpr_nic *nic)
{
	nic->link.address = cpr_nic_known(nic->about.addr);
	nic->link.mtu = nic->about.mtu;
	nic->link.speed = nic->about.speed;
	nic->link.state = strcmp(nic->about.state, "active") ? FI_LINK_UNKNOWN : FI_LINK_UP;
	nic->link.network_type = cpr_nic_known(nic->about.link);
}

int cpr_nic_make(const struct dev_about *about, const char *driver, struct fid_nic **out)
{
	struct cpr_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return -FI_ENOMEM;
	nic->about = *about;
	cpr_nic_fill_device(nic, driver);
	cpr_nic_fill_bus(nic);
	cpr_nic_fill_link(nic);
	nic->fid.fid.fclass = FI_CLASS_NIC;
	nic->fid.fid.ops = &cpr_nic_fi_ops;
	nic->fid.device_attr = &nic->device;
	nic->fid.bus_attr = &nic->bus;
	nic->fid.link_attr = &nic->link;
	*out = &nic->fid;
	return 0;
}
