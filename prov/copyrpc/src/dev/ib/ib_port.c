/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Choice of a port (ib_port.h). No state. */
#include "dev/ib/ib_port.h"

#include <ctype.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"

#define IB_PORT_MAX 255u
#define IB_GID_MAX  255u

/** Parses a decimal number from min to max and nothing else. */
static bool ib_selection_number(const char *text, unsigned min, unsigned max, unsigned *v)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoul(text, &end, 10);
	*v = (unsigned)n;
	return !*end && n >= min && n <= max;
}

static bool ib_selection_device(const char *text, struct ib_selection *selection)
{
	size_t len = strcspn(text, ":");

	if (len >= sizeof(selection->device) || (!len && text[len]))
		return false;
	memcpy(selection->device, text, len);
	return !text[len] || ib_selection_number(text + len + 1, 1, IB_PORT_MAX, &selection->port);
}

int ib_selection_parse(const char *device, const char *gid_index, struct ib_selection *selection)
{
	unsigned index;

	*selection = (struct ib_selection){ .gid_index = -1 };
	if (device && !ib_selection_device(device, selection)) {
		UTIL_WARN(FABRIC,
			  "FI_COPYRPC_DEVICE=%s: expected name or name:port, or several with "
			  "commas (ibv_devices)\n",
			  device);
		return -FI_EINVAL;
	}
	if (!gid_index || !*gid_index)
		return 0;
	if (!ib_selection_number(gid_index, 0, IB_GID_MAX, &index)) {
		UTIL_WARN(FABRIC, "FI_COPYRPC_GID_INDEX=%s: expected a number from 0 to %u\n",
			  gid_index, IB_GID_MAX);
		return -FI_EINVAL;
	}
	selection->gid_index = (int)index;
	return 0;
}

uint64_t ib_port_speed(uint8_t active_width, uint8_t active_speed)
{
	static const struct {
		uint8_t code;
		uint8_t transports;
	} widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
	static const struct {
		uint8_t code;
		uint32_t mbps;
	} speeds[] = { { 1, 2500 },   { 2, 5000 },   { 4, 10000 },  { 8, 10000 },
		       { 16, 14000 }, { 32, 25000 }, { 64, 50000 }, { 128, 100000 } };

	for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
		for (size_t s = 0; s < sizeof(speeds) / sizeof(speeds[0]); s++)
			if (widths[w].code == active_width && speeds[s].code == active_speed)
				return (uint64_t)widths[w].transports * speeds[s].mbps * 1000000;
	return 0;
}

/** Returns true if the port may be used beside the one that is in use. */
static bool ib_port_is_other(const struct ib_selection *selection, struct ibv_context *ctx,
			     unsigned num, const struct ibv_port_attr *attr)
{
	if (!selection->beside)
		return true;
	return attr->link_layer == selection->beside_layer &&
	       (num != selection->beside_port ||
		strcmp(selection->beside, ibv_get_device_name(ctx->device)) != 0);
}

/** Checks one port of an open device. Returns true if it is the best so far. */
static bool ib_port_look(const struct ib_selection *selection, struct ibv_context *ctx,
			 unsigned num, struct ib_port *best)
{
	struct ibv_port_attr attr;
	uint64_t speed;

	if (ibv_query_port(ctx, (uint8_t)num, &attr) || attr.state != IBV_PORT_ACTIVE ||
	    !ib_port_is_other(selection, ctx, num, &attr))
		return false;
	speed = ib_port_speed(attr.active_width, attr.active_speed);
	if (best->ctx && speed <= best->speed)
		return false;
	if (best->ctx && best->ctx != ctx)
		ibv_close_device(best->ctx);
	*best = (struct ib_port){ .ctx = ctx, .attr = attr, .num = (uint8_t)num, .speed = speed };
	return true;
}

/* Checks the rights: a failed open retries in other ways, and its errno hides the cause. */
static bool ib_port_is_forbidden(const struct ibv_device *device)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/infiniband/%.40s", device->dev_name);
	return access(path, R_OK | W_OK) && (errno == EACCES || errno == EPERM);
}

/** Checks all ports of a device. Returns 0 if one of them is now the best. */
static int ib_port_try(struct ibv_device *device, const struct ib_selection *selection,
		       struct ib_port *best, const char **why)
{
	struct ibv_context *ctx = ibv_open_device(device);
	struct ibv_device_attr attr;
	bool taken = false;

	if (!ctx && ib_port_is_forbidden(device)) {
		*why = "no right to open it: this user needs read and write access to "
		       "/dev/infiniband/uverbs* (udev rule of rdma-core, group rdma)";
		return -FI_EACCES;
	}
	if (!ctx) {
		*why = "it cannot be opened: is ib_uverbs loaded, and /dev/infiniband there (in a "
		       "container too)?";
		return -FI_ENODEV;
	}
	*why = "no port is active: check cable and link (ibv_devinfo)";
	if (!ibv_query_device(ctx, &attr))
		for (unsigned num = 1; num <= attr.phys_port_cnt; num++)
			if (!selection->port || selection->port == num)
				taken |= ib_port_look(selection, ctx, num, best);
	if (!taken)
		ibv_close_device(ctx);
	return taken ? 0 : -FI_ENODEV;
}

int ib_port_open(const struct ib_selection *selection, bool (*fits)(struct ibv_device *),
		 struct ib_port *port, const char **why)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int ret = -FI_ENODEV;

	*port = (struct ib_port){ 0 };
	*why = "there is no such device (ibv_devices lists them)";
	for (struct ibv_device **it = list; it && *it; it++) {
		if (*selection->device && strcmp(selection->device, ibv_get_device_name(*it)) != 0)
			continue;
		if ((*it)->transport_type != IBV_TRANSPORT_IB || (fits && !fits(*it)))
			continue;
		if (ib_port_try(*it, selection, port, why) == -FI_EACCES)
			ret = -FI_EACCES;
	}
	if (list)
		ibv_free_device_list(list);
	return port->ctx ? 0 : ret;
}
