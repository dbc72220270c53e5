/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The plan of a job: see info_plan.h. */
#include "info/info_plan.h"

#include <inttypes.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "dev/shm/shm_seg.h"
#include "info/info.h"
#include "ring/ring_len.h"
#include "util/bits.h"
#include "util/log.h"
#include "util/iface.h"
#include "util/name.h"
#include "util/param.h"
#include "util/port.h"

#define TOPIC             "plan"
#define INFO_PLAN_SESSION 4096u /* a session and its connection: datagram-protocol.md, section 9 */

#define ROW(field, label, unit)                                                                    \
	{                                                                                          \
#field, label, unit, offsetof(struct info_plan, field)                             \
	}

const struct info_plan_row info_plan_rows[] = {
	ROW(ranks, "ranks", ""),
	ROW(per_node, "ranks of a node", ""),
	ROW(nodes, "nodes", ""),
	ROW(local_peers, "peers of a rank on its node", ""),
	ROW(remote_peers, "peers of a rank on other nodes", ""),
	ROW(ring_first, "ring of the first peer", "B"),
	ROW(ring_last, "ring of the last peer", "B"),
	ROW(ring_mem, "rings of a rank", "B"),
	ROW(session_mem, "sessions over UDP of a rank", "B"),
	ROW(unexpected_mem, "unexpected messages of a rank, at most", "B"),
	ROW(node_mem, "rings and sessions of a node", "B"),
	ROW(files, "open files of a rank", ""),
	ROW(qps, "queue pairs of a rank", ""),
	ROW(node_qps, "queue pairs of a node", ""),
	ROW(sockets, "UDP sockets of a rank", ""),
	ROW(ports, "UDP ports of a node", ""),
	ROW(mem_needed, "FI_COPYRPC_MEM at which every peer has a ring", "B"),
	ROW(unserved, "peers of a rank without a ring", ""),
};

const size_t info_plan_row_cnt = sizeof(info_plan_rows) / sizeof(info_plan_rows[0]);

uint64_t info_plan_value(const struct info_plan *plan, const struct info_plan_row *row)
{
	return *(const uint64_t *)(const void *)((const char *)plan + row->offset);
}

/* Makes the rings of `peers` more peers from what is left of the budget `mem`. */
static void info_plan_rings(struct info_plan *plan, uint64_t peers, bool registers,
			    const struct info_plan_settings *settings, uint64_t mem, uint64_t *left)
{
	for (uint64_t i = 0; i < peers; i++) {
		uint64_t len =
			ring_len_next(mem, *left, registers, settings->ring_size, ENG_SIZE_DEFAULT);

		if (!len) {
			plan->unserved += peers - i;
			return;
		}
		plan->ring_first = plan->ring_first ? plan->ring_first : len;
		plan->ring_last = len;
		*left -= registers ? 2 * len : len;
		plan->ring_mem += registers ? 2 * len : shm_seg_len(len);
	}
}

/* Returns whether every peer gets a ring. */
static bool info_plan_fits(uint64_t ring_peers, uint64_t nic_peers, uint64_t mem,
			   const struct info_plan_settings *settings)
{
	struct info_plan plan = { 0 };
	uint64_t left = mem;

	info_plan_rings(&plan, ring_peers, false, settings, mem, &left);
	info_plan_rings(&plan, nic_peers, true, settings, mem, &left);
	return !plan.unserved;
}

/*
 * Returns a budget that is enough for all, within 1/16 of the least. The least would give every
 * peer the smallest ring, but the first ones take larger ones.
 */
static uint64_t info_plan_budget(uint64_t ring_peers, uint64_t nic_peers,
				 const struct info_plan_settings *settings)
{
	uint64_t len = settings->ring_size ? util_pow2_floor(settings->ring_size) : RING_LEN_LEAST;
	uint64_t mem = (ring_peers + 2 * nic_peers) * len;

	while (!info_plan_fits(ring_peers, nic_peers, mem, settings))
		mem += mem / 16;
	return mem;
}

/* Returns the queue pairs of tag matching: two a peer, and one for its list of receives. */
static uint64_t info_plan_tag_qps(uint64_t nic_peers, const struct info_plan_settings *settings)
{
	if (!settings->tags || !nic_peers)
		return 0;
	return 1 + 2 * (nic_peers < INFO_PLAN_TAG_PEERS ? nic_peers : INFO_PLAN_TAG_PEERS);
}

/* Returns one queue pair a peer, or those of rc_max peers and of DC: initiators and a target. */
static uint64_t info_plan_qps(uint64_t nic_peers, const struct info_plan_settings *settings)
{
	if (!settings->dc || nic_peers <= settings->rc_max)
		return nic_peers;
	return settings->rc_max + settings->dci_count + 1;
}

/*
 * Counts sockets: each address of a name has one for handshakes, all at one port, and if the path
 * udp is used one for packets, at a port of its own. A second one of that port, for the peer that
 * most packets go to (dev/udp/udp_near.h), comes later, and counts in files only.
 */
static void info_plan_sockets(struct info_plan *plan, const struct info_plan_settings *settings,
			      bool uses_udp)
{
	uint64_t addrs = settings->addrs ? settings->addrs : 1;

	plan->sockets = uses_udp ? 2 * addrs : addrs;
	plan->ports = plan->per_node * (uses_udp ? 1 + addrs : 1);
	plan->files += (addrs - 1) * (uses_udp ? 1 + INFO_PLAN_FILES_UDP : 1);
}

void info_plan_make(uint64_t ranks, uint64_t per_node, const struct info_plan_settings *settings,
		    struct info_plan *plan)
{
	uint64_t left = settings->mem, ring_peers, nic_peers, udp_peers;

	memset(plan, 0, sizeof(*plan));
	per_node = per_node < ranks ? per_node : ranks;
	plan->ranks = ranks;
	plan->per_node = per_node;
	plan->nodes = (ranks + per_node - 1) / per_node;
	plan->local_peers = per_node - 1;
	plan->remote_peers = ranks - per_node;
	ring_peers = settings->shm ? plan->local_peers : 0;
	nic_peers = settings->nic ? plan->remote_peers : 0;
	udp_peers = ranks - 1 - ring_peers - nic_peers;
	info_plan_rings(plan, ring_peers, false, settings, settings->mem, &left);
	info_plan_rings(plan, nic_peers, true, settings, settings->mem, &left);
	plan->mem_needed = info_plan_budget(ring_peers, nic_peers, settings);
	plan->session_mem = udp_peers * INFO_PLAN_SESSION;
	plan->unexpected_mem = settings->unexpected_mem;
	plan->node_mem = per_node * (plan->ring_mem + plan->session_mem);
	plan->files =
		INFO_PLAN_FILES_BASE + INFO_PLAN_FILES_MPI + INFO_PLAN_FILES_PEER * ring_peers;
	plan->qps = info_plan_qps(nic_peers, settings) + info_plan_tag_qps(nic_peers, settings);
	plan->node_qps = per_node * plan->qps;
	info_plan_sockets(plan, settings, udp_peers);
}

uint64_t info_plan_peers_for_files(uint64_t files)
{
	uint64_t base = INFO_PLAN_FILES_BASE + INFO_PLAN_FILES_MPI;

	return files > base ? (files - base) / INFO_PLAN_FILES_PEER : 0;
}

/* Returns the number of addresses that the name of an endpoint of this shell has. */
static uint64_t info_plan_addrs(const char *filter)
{
	struct in_addr others[UTIL_NAME_OTHERS];
	struct util_iface first;

	if (!util_iface_list(util_iface_family(filter), filter, &first, 1))
		return 1;
	util_iface_add_others(&first.addr.sa, filter);
	return 1 + util_name_others(&first.addr.sa, others);
}

static uint64_t info_plan_port_cnt(const char *range)
{
	uint16_t first, last;

	return range && util_port_parse(range, &first, &last) ? last - first + 1u : 0;
}

void info_plan_read(struct info_plan_settings *settings, bool nic, bool dc)
{
	bool rings;

	util_param_define(&util_log_prov);
	util_param_load(&util_log_prov);
	rings = !util_params.endpoint || strcmp(util_params.endpoint, "ud") != 0;
	*settings = (struct info_plan_settings){
		.mem = util_params.mem,
		.ring_size = util_params.ring_size,
		.unexpected_mem = util_params.unexpected_mem,
		.nic = rings && nic && strstr(util_params.paths, "nic"),
		.dc = dc,
		.rc_max = (uint64_t)util_params.rc_max,
		.dci_count = (uint64_t)util_params.dci_count,
		.tags = util_params.tag_offload > 0,
		.shm = rings && strstr(util_params.paths, "shm"),
		.addrs = info_plan_addrs(util_params.iface),
		.port_cnt = info_plan_port_cnt(util_params.ports),
		.node_total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
	};
}

/* ---- judgement ---- */

static void info_plan_judge_files(const struct info_plan *plan, struct info_report *report)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= plan->files)
		return;
	info_add(report, INFO_BROKEN, TOPIC, "plan-files",
		 "a rank needs %" PRIu64 " open files and may have %ju", plan->files,
		 (uintmax_t)limit.rlim_cur);
	info_mend(report, "ulimit -n %" PRIu64 "%s", plan->files,
		  limit.rlim_max >= plan->files ? "" : " (as root, or nofile in limits.conf)");
}

static void info_plan_judge_rings(const struct info_plan *plan,
				  const struct info_plan_settings *settings,
				  struct info_report *report)
{
	uint64_t mib = (plan->mem_needed >> 20) + 1;

	if (plan->unserved) {
		info_add(report, INFO_BROKEN, TOPIC, "plan-mem",
			 "%" PRIu64 " peers of a rank get no ring from FI_COPYRPC_MEM (%" PRIu64
			 " MiB), and operations to them fail",
			 plan->unserved, settings->mem >> 20);
		info_mend(report, "export FI_COPYRPC_MEM=%" PRIu64 "M, or FI_COPYRPC_ENDPOINT=ud",
			  mib);
	} else if (plan->ring_last && plan->ring_last < plan->ring_first) {
		info_add(report, INFO_NOTE, TOPIC, "plan-small-rings",
			 "later peers of a rank get rings of %" PRIu64
			 " KiB, the first ones of %" PRIu64 " KiB",
			 plan->ring_last >> 10, plan->ring_first >> 10);
	}
}

/*
 * Returns the largest FI_COPYRPC_MEM, in MiB, of half the present one, a quarter and less, with
 * which every peer has a ring and a node takes less than `room`. Returns 0 if there is none.
 */
static uint64_t info_plan_lower(const struct info_plan *plan,
				const struct info_plan_settings *settings, uint64_t room)
{
	struct info_plan_settings lower = *settings;
	uint64_t least = (plan->mem_needed >> 20) + 1;
	struct info_plan other;

	for (uint64_t mib = settings->mem >> 21; mib >= least; mib /= 2) {
		lower.mem = mib << 20;
		info_plan_make(plan->ranks, plan->per_node, &lower, &other);
		if (!other.unserved && other.node_mem < room)
			return mib;
	}
	return 0;
}

static void info_plan_judge_memory(const struct info_plan *plan,
				   const struct info_plan_settings *settings,
				   struct info_report *report)
{
	uint64_t total = settings->node_total, mib;

	if (!total || plan->node_mem < total / 4)
		return;
	info_add(report, plan->node_mem < total ? INFO_SLOW : INFO_BROKEN, TOPIC, "plan-node-mem",
		 "rings of a node take %" PRIu64 " MiB of %" PRIu64 " MiB", plan->node_mem >> 20,
		 total >> 20);
	mib = info_plan_lower(plan, settings, total / 4);
	if (!mib && plan->node_mem >= total)
		mib = info_plan_lower(plan, settings, total);
	if (mib)
		info_mend(report,
			  "export FI_COPYRPC_MEM=%" PRIu64
			  "M, or FI_COPYRPC_ENDPOINT=ud (sessions of 4 KiB)",
			  mib);
	else if (settings->shm || settings->nic)
		info_mend(report, "export FI_COPYRPC_ENDPOINT=ud (sessions of 4 KiB)");
	else
		info_mend(report, "start fewer ranks on a node");
}

static void info_plan_judge_ports(const struct info_plan *plan,
				  const struct info_plan_settings *settings,
				  struct info_report *report)
{
	if (!settings->port_cnt || settings->port_cnt >= plan->ports)
		return;
	info_add(report, INFO_BROKEN, TOPIC, "plan-ports",
		 "the ranks of a node need %" PRIu64
		 " UDP ports, and FI_COPYRPC_PORTS has %" PRIu64,
		 plan->ports, settings->port_cnt);
	info_mend(report, "export FI_COPYRPC_PORTS=FIRST-LAST, a range of %" PRIu64 " at least",
		  plan->ports);
}

void info_plan_judge(const struct info_plan *plan, const struct info_plan_settings *settings,
		     struct info_report *report)
{
	info_plan_judge_files(plan, report);
	info_plan_judge_rings(plan, settings, report);
	info_plan_judge_memory(plan, settings, report);
	info_plan_judge_ports(plan, settings, report);
	if (info_report_verdict(report) < INFO_SLOW)
		info_add(report, INFO_GOOD, TOPIC, "plan",
			 "the limits of this shell are enough for this job");
}
