/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RDMA devices: each port, whether copyrpc uses it, and why not.
 *
 * Ports and GIDs are ranked by the provider's own functions (dev/ib). The device that is in use is
 * the one that fi_getinfo reported (probe_offer.c). libibverbs is asked in a child, because drivers
 * of devices are loaded for it.
 */
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dev/ib/ib_gid.h"
#include "dev/ib/ib_port.h"
#include "info/info.h"
#include "info/info_child.h"
#include "info/info_mlx5.h"
#include "info/info_probes.h"

#define TOPIC     "rdma"
#define GIDS_MAX  1024u
#define PORTS_MAX 32u

enum rdma_open { RDMA_OPEN, RDMA_FORBIDDEN, RDMA_CLOSED };

/** One port, or a device that cannot be opened (num 0). Written by the child. */
struct rdma_port {
	char name[IBV_SYSFS_NAME_MAX];
	enum rdma_open open;
	bool other_transport; /* iWARP, usNIC: no InfiniBand verbs */
	uint8_t num;
	bool active;
	bool is_eth;
	bool has_gid;
	bool has_odp;
	struct info_mlx5 mlx5;
	unsigned mtu, mtu_max; /* bytes */
	uint64_t speed;        /* bits per second */
	char gid[IB_GID_TEXT_MAX];
};

static void rdma_find_gid(struct ibv_context *ctx, struct rdma_port *port)
{
	struct ibv_gid_entry *table = calloc(GIDS_MAX, sizeof(*table));
	ssize_t cnt = table ? ibv_query_gid_table(ctx, table, GIDS_MAX, 0) : 0;
	int best;

	for (ssize_t i = 0; i < cnt; i++)
		if (table[i].port_num != port->num)
			memset(&table[i].gid, 0, sizeof(table[i].gid));
	best = cnt > 0 ? ib_gid_pick(table, (size_t)cnt) : -1;
	port->has_gid = best >= 0;
	if (best >= 0)
		ib_gid_text(&table[best].gid, port->gid);
	free(table);
}

static bool rdma_has_odp(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr;

	return !ibv_query_device_ex(ctx, NULL, &attr) &&
	       attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

static void rdma_read_port(struct ibv_context *ctx, struct rdma_port *port)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(ctx, port->num, &attr))
		return;
	port->active = attr.state == IBV_PORT_ACTIVE;
	port->is_eth = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	port->speed = ib_port_speed(attr.active_width, attr.active_speed);
	port->mtu = 128u << attr.active_mtu;
	port->mtu_max = 128u << attr.max_mtu;
	port->has_odp = rdma_has_odp(ctx);
	port->mlx5 = info_mlx5_ask(ctx);
	rdma_find_gid(ctx, port);
}

static void rdma_write(int out, const struct rdma_port *port)
{
	if (write(out, port, sizeof(*port)) != sizeof(*port))
		_exit(1);
}

/* A failed open hides its cause: the rights are looked at. */
static enum rdma_open rdma_why_closed(const struct ibv_device *device)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/infiniband/%.40s", device->dev_name);
	return access(path, R_OK | W_OK) && (errno == EACCES || errno == EPERM) ? RDMA_FORBIDDEN
										: RDMA_CLOSED;
}

static void rdma_device(struct ibv_device *device, int out)
{
	struct ibv_context *ctx = ibv_open_device(device);
	struct rdma_port port = { .num = 0 };
	struct ibv_device_attr attr;

	snprintf(port.name, sizeof(port.name), "%s", ibv_get_device_name(device));
	port.other_transport = device->transport_type != IBV_TRANSPORT_IB;
	if (!ctx || ibv_query_device(ctx, &attr)) {
		port.open = rdma_why_closed(device);
		rdma_write(out, &port);
		return;
	}
	for (unsigned num = 1; num <= attr.phys_port_cnt; num++) {
		port.num = (uint8_t)num;
		rdma_read_port(ctx, &port);
		rdma_write(out, &port);
	}
	ibv_close_device(ctx);
}

static int rdma_child(void *arg, int out)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)arg;
	for (struct ibv_device **it = list; it && *it; it++)
		rdma_device(*it, out);
	return 0;
}

/* Returns the names of the devices that the kernel lists. */
static char *rdma_kernel_names(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	char *names = info_print("%s", ""), *more;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		more = info_print("%s%s%s", names, *names ? ", " : "", entry->d_name);
		free(names);
		names = more;
	}
	if (dir)
		closedir(dir);
	return names;
}

/* ---- judgement ---- */

#define RDMA_MEND_FILE "modprobe ib_uverbs (as root; docker run --device /dev/infiniband)"

static void rdma_judge_closed(struct info_report *report, const struct rdma_port *port)
{
	if (port->open == RDMA_FORBIDDEN) {
		info_add(report, INFO_SLOW, TOPIC, "rdma-forbidden",
			 "%s: this user has no right to open it: peers on other hosts are "
			 "reached over UDP",
			 port->name);
		info_mend(
			report,
			"usermod -a -G rdma $USER, or chmod 666 /dev/infiniband/uverbs* (as root)");
	} else {
		info_add(report, INFO_SLOW, TOPIC, "rdma-closed",
			 "%s cannot be opened, though the rights of its file permit it (a device "
			 "cgroup?): peers on other hosts are reached over UDP",
			 port->name);
		info_mend(report, RDMA_MEND_FILE);
	}
}

static void rdma_judge_unused(struct info_report *report, const struct rdma_port *port)
{
	if (port->other_transport) {
		info_add(report, INFO_NOTE, TOPIC, "rdma-other",
			 "%s:%u is not used: copyrpc uses InfiniBand and RoCE", port->name,
			 port->num);
	} else if (!port->active) {
		info_add(report, INFO_SLOW, TOPIC, "rdma-port-down",
			 "%s:%u is not used: the port is not active", port->name, port->num);
		info_mend(report,
			  "check cable and switch; ibv_devinfo -d %s; InfiniBand needs a subnet "
			  "manager (opensm)",
			  port->name);
	} else if (!port->has_gid) {
		info_add(report, INFO_SLOW, TOPIC, "rdma-no-gid",
			 "%s:%u is not used: it has no GID that peers could reach", port->name,
			 port->num);
		info_mend(report, "give the network interface over %s an address (ip addr add)",
			  port->name);
	} else {
		info_add(report, INFO_NOTE, TOPIC, "rdma-unused",
			 "%s:%u is active and not used: another port is faster or "
			 "FI_COPYRPC_DEVICE or FI_COPYRPC_PATHS selects another",
			 port->name, port->num);
	}
}

/** Tells how the device is driven, and what else it can do. */
static void rdma_judge_driver(struct info_report *report, const struct rdma_port *port)
{
	const char *dc = port->mlx5.has_dc
				 ? "; it has DC queue pairs for peers beyond FI_COPYRPC_RC_MAX"
				 : "";

	if (!port->mlx5.direct)
		info_add(report, INFO_NOTE, TOPIC, "rdma-driver",
			 "%s is driven through libibverbs: direct verbs are for ConnectX",
			 port->name);
	else if (port->mlx5.bf_len)
		info_add(report, INFO_GOOD, TOPIC, "rdma-driver",
			 "%s is driven by direct verbs, with BlueFlame (%u bytes)%s", port->name,
			 port->mlx5.bf_len, dc);
	else
		info_add(report, INFO_NOTE, TOPIC, "rdma-driver",
			 "%s is driven by direct verbs, without BlueFlame: the device fetches each "
			 "message by DMA%s",
			 port->name, dc);
}

static void rdma_judge_used(struct info_report *report, const struct rdma_port *port)
{
	info_add(report, INFO_GOOD, TOPIC, "rdma",
		 "%s:%u is used: %s, %" PRIu64 " Gbit/s, MTU %u, GID %s%s", port->name, port->num,
		 port->is_eth ? "RoCE" : "InfiniBand", port->speed / 1000000000, port->mtu,
		 port->gid, port->has_odp ? ", on-demand paging" : "");
	rdma_judge_driver(report, port);
	if (port->mtu < port->mtu_max) {
		info_add(report, INFO_SLOW, TOPIC, "rdma-mtu",
			 "%s:%u sends packets of %u bytes and could send %u: long messages cost "
			 "more packets",
			 port->name, port->num, port->mtu, port->mtu_max);
		info_mend(report, port->is_eth
					  ? "ip link set dev INTERFACE mtu 9000 on all hosts and "
					    "switches (as root)"
					  : "raise the MTU of the partition in the subnet manager");
	}
}

static void rdma_judge(struct info *info, const struct rdma_port *port)
{
	size_t len = strlen(port->name);

	if (port->open != RDMA_OPEN) {
		rdma_judge_closed(&info->report, port);
		return;
	}
	/* The port that the provider reports has the name of its device. */
	if (port->active && port->has_gid && !strncmp(info->nic, port->name, len) &&
	    !info->nic[len]) {
		info->has_rdma = true;
		info->has_dc = port->mlx5.has_dc;
		rdma_judge_used(&info->report, port);
	} else {
		rdma_judge_unused(&info->report, port);
	}
}

/* libibverbs leaves devices out whose files in /dev/infiniband are missing. */
static void rdma_judge_none(struct info_report *report)
{
	char *names = rdma_kernel_names();

	if (*names) {
		info_add(
			report, INFO_SLOW, TOPIC, "rdma-no-file",
			"the kernel has RDMA devices (%s), but libibverbs finds none: their files "
			"in /dev/infiniband are missing; peers on other hosts are reached over UDP",
			names);
		info_mend(report, RDMA_MEND_FILE);
	} else {
		info_add(report, INFO_NOTE, TOPIC, "rdma-none",
			 "libibverbs finds no RDMA device: peers on other hosts are reached over "
			 "UDP");
	}
	free(names);
}

void info_probe_rdma(struct info *info)
{
	struct rdma_port ports[PORTS_MAX];
	struct info_child child;
	bool failed;
	size_t cnt;

	failed = info_child_run(rdma_child, NULL, INFO_CHILD_SECONDS, &child) || !child.ended ||
		 child.status;
	if (failed) {
		info_add(&info->report, INFO_SLOW, TOPIC, "rdma-crash",
			 "libibverbs fails while it lists the RDMA devices");
		info_mend(&info->report, "ibv_devinfo");
	}
	cnt = child.len / sizeof(ports[0]);
	cnt = cnt < PORTS_MAX ? cnt : PORTS_MAX;
	if (cnt)
		memcpy(ports, child.out, cnt * sizeof(ports[0]));
	for (size_t i = 0; i < cnt; i++)
		rdma_judge(info, &ports[i]);
	if (!cnt && !failed)
		rdma_judge_none(&info->report);
	info_child_fini(&child);
}
