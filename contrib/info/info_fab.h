/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One endpoint of copyrpc and its peer, for trials: through libfabric's public interface, so that
 * they do what a program would.
 *
 * Both ends call the same functions in the same order, one with `first` set. Every wait ends:
 * with an error of the provider, or after INFO_FAB_SECONDS. Called in children, by
 * probe_trial.c and info_peer.c.
 */
#ifndef INFO_INFO_FAB_H
#define INFO_INFO_FAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#define INFO_FAB_SECONDS  40u
#define INFO_FAB_ADDR_MAX 64u

struct info_fab {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	uint8_t name[INFO_FAB_ADDR_MAX]; /* address of this endpoint */
	size_t name_len;
	char *buf;        /* INFO_FAB_LONG bytes to send, and as many to receive behind them */
	const char *step; /* last call, for a message */
};

#define INFO_FAB_SHORT 8u
#define INFO_FAB_LONG  ((size_t)1 << 20)

/** Opens an endpoint of `domain` ("copyrpc-rc"), at `node` or the default address. 0 or error. */
int info_fab_open(struct info_fab *fab, const char *domain, const char *node);

/** Sets the peer. Returns 0 or an error. */
int info_fab_connect(struct info_fab *fab, const void *name);

/**
 * Exchanges `rounds` messages of `len` bytes and as many back. Returns 0 or an error; ns[] is half
 * of each round trip.
 */
int info_fab_ping(struct info_fab *fab, bool first, size_t len, unsigned rounds, uint64_t *ns);

/** Closes what is open. */
void info_fab_close(struct info_fab *fab);

#endif
