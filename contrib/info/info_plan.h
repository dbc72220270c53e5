/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Needs of a job: memory, files, queue pairs and ports, if every rank communicates with every other
 * one.
 *
 * Computed from the constants and functions of the provider: the sizes of rings in the order in
 * which connections are made (ring/ring_len.h), with this shell's FI_COPYRPC_MEM and
 * FI_COPYRPC_RING_SIZE. test/integ/info/info-plan compares it with a measurement. Figures are those
 * of the provider; the MPI library and the application come on top.
 */
#ifndef INFO_INFO_PLAN_H
#define INFO_INFO_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct info_report;

/** Files that a process has open before its first peer, with those of libfabric and a margin. */
#define INFO_PLAN_FILES_BASE 32u
#define INFO_PLAN_FILES_MPI  64u  /* files of a rank that belong to Open MPI and its tools */
#define INFO_PLAN_FILES_PEER 2u   /* the peer's bell, and the stream of the handshake */
#define INFO_PLAN_TAG_PEERS  256u /* peers whose messages a device matches; two queue pairs each */
#define INFO_PLAN_FILES_UDP  3u   /* sockets of the path udp, and the set that waits for them */

struct info_plan {
	uint64_t ranks, per_node, nodes;
	uint64_t local_peers, remote_peers; /* of one rank */
	uint64_t ring_first, ring_last;     /* sizes of the rings of the first and the last peer */
	uint64_t ring_mem;                  /* rings of one rank */
	uint64_t session_mem;               /* sessions over UDP of one rank */
	uint64_t unexpected_mem;            /* at most, of one rank */
	uint64_t node_mem;                  /* rings and sessions of all ranks of a node */
	uint64_t files;                     /* of one rank, Open MPI's among them */
	uint64_t qps, node_qps;             /* queue pairs of one rank and of a node */
	uint64_t sockets;                   /* UDP sockets of one rank, at all of its addresses */
	uint64_t ports;                     /* UDP ports of a node */
	uint64_t mem_needed;                /* FI_COPYRPC_MEM at which every peer gets a ring */
	uint64_t unserved;                  /* peers of a rank that get no ring */
};

struct info_plan_row {
	const char *id, *label, *unit; /* unit "B": printed in KiB or MiB */
	size_t offset;
};

extern const struct info_plan_row info_plan_rows[];
extern const size_t info_plan_row_cnt;

uint64_t info_plan_value(const struct info_plan *plan, const struct info_plan_row *row);

/** Settings that the plan depends on. */
struct info_plan_settings {
	uint64_t mem, ring_size, unexpected_mem; /* parameters of the provider */
	bool nic;                                /* peers on other hosts are reached by RDMA */
	bool dc;                                 /* and by DC beyond rc_max of them */
	uint64_t rc_max, dci_count;
	bool tags;           /* a device matches tags, if peers are reached by RDMA */
	bool shm;            /* peers of this host are reached by memory */
	uint64_t addrs;      /* addresses in the name of an endpoint; 0: one */
	uint64_t port_cnt;   /* FI_COPYRPC_PORTS; 0: any */
	uint64_t node_total; /* memory of a node; 0: unknown, and not judged */
};

/** Computes the plan of `ranks` ranks, `per_node` on each node. Pure. */
void info_plan_make(uint64_t ranks, uint64_t per_node, const struct info_plan_settings *settings,
		    struct info_plan *plan);

/** Reads the settings of this shell. */
void info_plan_read(struct info_plan_settings *settings, bool nic, bool dc);

/** Adds what has to be set for the plan, compared with the limits of this process. */
void info_plan_judge(const struct info_plan *plan, const struct info_plan_settings *settings,
		     struct info_report *report);

/** Returns the number of peers of a host for which this limit on open files is enough. */
uint64_t info_plan_peers_for_files(uint64_t files);

#endif
