/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which knobs are there, and how are they set?
 *
 * One table (util_param_table in util/param.c) names every FI_COPYRPC_* parameter with its type,
 * default, bounds and help text; fi_param_define publishes it (`fi_info -e`), util_param_load
 * reads it once at load time. A value out of bounds is replaced by the nearest bound and an
 * unreadable one by the default, each with a WARN that names the parameter. An unknown
 * FI_COPYRPC_* in the environment gets a WARN with the nearest known name. The job key's value
 * is never logged.
 *
 * Shown by test/unit/util/test_param.c.
 */
#ifndef UTIL_PARAM_H
#define UTIL_PARAM_H

#include <stddef.h>
#include <stdint.h>

struct fi_provider;

/** The values, fixed after load; sizes in bytes, times in milliseconds unless the name says. */
struct util_params {
	const char *job_key;    /* JOB_KEY: NULL if none; owned by the environment */
	const char *paths;      /* PATHS: comma-separated, "shm,nic,udp" */
	const char *endpoint;   /* ENDPOINT: "rc", "ud"; NULL: both */
	const char *device;     /* DEVICE: "name" or "name:port"; NULL: the best */
	const char *gid_index;  /* GID_INDEX: NULL: the best */
	const char *fault;      /* FAULT: NULL: none; dev/fault reads it */
	size_t mem;             /* MEM: budget of ring memory per domain */
	size_t ring_size;       /* RING_SIZE: 0 = by budget and number of peers */
	size_t eager_max;       /* EAGER_MAX: largest message that goes in one piece */
	size_t rndv_min;        /* RNDV_MIN: from here a NIC reads the sender's memory */
	size_t single_copy_min; /* SINGLE_COPY_MIN: from here the kernel copies, 0 = never */
	size_t unexpected_mem;  /* UNEXPECTED_MEM: heap for unexpected messages, per domain */
	int peer_timeout_ms;    /* PEER_TIMEOUT */
	int single_copy;        /* SINGLE_COPY: 0 never process_vm_readv, 1 if the probe passes */
	int link_rate; /* LINK_RATE: Mbit/s that datagrams are paced for, 0 = the device's */
	int udp_plain; /* UDP_PLAIN: 1 has the kernel neither cut nor join datagrams */
	int hold;      /* HOLD: 0 lets no transfer wait for the next progress call */
	int layering;  /* LAYERING: 1 lets the core stack ofi_rxm over this provider */
};

extern struct util_params util_params;

/** Publishes every parameter with fi_param_define. Call first in fi_prov_ini. */
void util_param_define(struct fi_provider *prov);

/** Reads them all, checks bounds, warns of unknown FI_COPYRPC_* names in `environ`. */
void util_param_load(struct fi_provider *prov);

#endif
