/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Definitions, defaults and bounds of the FI_COPYRPC_* parameters.
 *
 * One table (util/param_table.c) lists every parameter with its type, default, bounds and help
 * text. util_param_define publishes the table (`fi_info -e`); util_param_load reads the values once
 * when the provider is loaded. A value out of bounds is replaced by the nearest bound, an
 * unreadable one by the default. Both log a warning that names the parameter. An unknown
 * FI_COPYRPC_* variable logs a warning, with a known name if one is near. Of a job's processes on a
 * host the first one logs these warnings. The value of the job key is never logged.
 */
#ifndef UTIL_PARAM_H
#define UTIL_PARAM_H

#include <stdbool.h>
#include <stddef.h>

#define UTIL_PARAM_EAGER_MIN 64u /* least EAGER_MAX and UDP_EAGER_MAX */

struct fi_provider;

/**
 * Parameter values, constant after load. Sizes in bytes, times in milliseconds unless the name says
 * otherwise.
 */
struct util_params {
	const char *job_key;    /* JOB_KEY: NULL if none; owned by the environment */
	const char *paths;      /* PATHS: comma-separated, "shm,nic,udp" */
	const char *endpoint;   /* ENDPOINT: "rc", "ud"; NULL: both */
	const char *device;     /* DEVICE: "name", "name:port", ...; NULL: fastest active port */
	const char *iface;      /* IFACE: interfaces to use; NULL: any (util/iface_filter.h) */
	const char *ports;      /* PORTS: "first-last"; NULL: any (util/port.h) */
	const char *gid_index;  /* GID_INDEX: NULL: RoCE v2 with an IPv4 address preferred */
	const char *stats;      /* STATS: "stderr", or the name of a file; NULL: no report */
	const char *fault;      /* FAULT: parsed by dev/fault; NULL: no faults */
	size_t mem;             /* MEM: budget of ring memory per domain */
	size_t ring_size;       /* RING_SIZE: 0: from `mem` and the number of peers */
	size_t grant_max;       /* GRANT_MAX: response bytes that a peer may reserve; 0: default */
	size_t eager_max;       /* EAGER_MAX: largest message sent in one piece */
	size_t udp_eager_max;   /* UDP_EAGER_MAX: likewise over UDP, where it exceeds EAGER_MAX */
	size_t rndv_min;        /* RNDV_MIN: smallest message for rendezvous */
	size_t single_copy_min; /* SINGLE_COPY_MIN: smallest message the kernel copies; 0: none */
	size_t unexpected_mem;  /* UNEXPECTED_MEM: heap for unexpected messages, per domain */
	int peer_timeout_ms;    /* PEER_TIMEOUT */
	int watch_s;            /* WATCH: seconds after which a wait is reported; 0: never */
	int revoke_timeout_ms;  /* REVOKE_TIMEOUT: wait of a close for peers with a lease */
	int nic_rma;            /* NIC_RMA: regions that devices access: 0: none, 1: with
				 * FI_MR_ALLOCATED, 2: all */
	int dci_count;          /* DCI_COUNT: DC initiators of a device */
	int rc_max;             /* RC_MAX: peers with an RC queue pair; the others by DC */
	int tag_offload;        /* TAG_OFFLOAD: 1: devices match long tagged messages */
	int rails;              /* RAILS: RDMA devices that a connection uses: 1 or 2 */
	int rc_interval_ms;     /* RC_INTERVAL: between choices of these peers; 0: none */
	int single_copy;        /* SINGLE_COPY: 0: never process_vm_readv; 1: if the probe passes */
	int link_rate; /* LINK_RATE: Mbit/s that datagrams are paced for; 0: the device's default */
	int udp_plain; /* UDP_PLAIN: 1: no GSO, no GRO */
	int hold;      /* HOLD: 0: transfers never wait for the next progress call */
	int layering;  /* LAYERING: 1: the core may stack ofi_rxm over this provider */
};

extern struct util_params util_params;

/** Returns the period of looks at waits: a quarter of WATCH, 2500 ms at most; 0: none. */
static inline int util_param_watch_ms(void)
{
	return util_params.watch_s < 10 ? util_params.watch_s * 250 : 2500;
}

/** Publishes every parameter with fi_param_define. Called first in fi_prov_ini. */
void util_param_define(struct fi_provider *prov);

/** Reads and checks all parameters; warns of unknown FI_COPYRPC_* names in `environ`. */
void util_param_load(struct fi_provider *prov);

/**
 * Returns whether `name`, `len` characters without the prefix, is a parameter. If not, *near is the
 * most similar name, or NULL if none is similar.
 */
bool util_param_is_known(const char *name, size_t len, const char **near);

#endif
