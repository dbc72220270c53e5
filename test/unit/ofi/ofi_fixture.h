/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixtures of the tests of ofi/: the provider as libfabric sees it, without libfabric's loader
 * (fi_prov_ini and op tables). A pair is two endpoints of one domain on the loopback address, both
 * inserted in one address vector. A failure in a fixture fails the test.
 */
#ifndef OFI_FIXTURE_H
#define OFI_FIXTURE_H

#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdint.h>

#define OFI_API FI_VERSION(1, 17)

struct ofi_options {
	uint32_t api;  /* 0: OFI_API */
	uint64_t caps; /* 0: all */
	uint64_t mode;
	enum fi_ep_type ep_type; /* 0: the first one offered */
	uint64_t tx_op_flags;
	uint64_t rx_op_flags;
	enum fi_threading threading;
	enum fi_progress progress;
	enum fi_cq_format format; /* unspecified: tagged */
	enum fi_wait_obj wait_obj;
	enum fi_cq_wait_cond wait_cond;
	uint64_t bind_flags; /* besides FI_TRANSMIT | FI_RECV */
	int mr_mode;
	bool counters; /* bind tx_cntr and rx_cntr too */
};

struct ofi_pair {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq[2];
	struct fid_cntr *tx_cntr[2];
	struct fid_cntr *rx_cntr[2];
	struct fid_ep *ep[2];
	fi_addr_t addr[2]; /* of ep[0] and ep[1], in av */
};

struct fi_provider *ofi_provider(void);

/** Calls the provider's fi_getinfo with flags 0; hints may be NULL. */
int ofi_getinfo(const struct fi_info *hints, struct fi_info **info);
/** Returns hints with the loopback address as source. Free with fi_freeinfo. */
struct fi_info *ofi_hints(void);

/** Opens fabric and domain for hints, no endpoints. */
void ofi_domain_open(struct ofi_pair *p, const struct ofi_options *opts);
void ofi_pair_open(struct ofi_pair *p, const struct ofi_options *opts);
/** Closes all that is open; every fi_close must return 0. */
void ofi_pair_close(struct ofi_pair *p);
/** Opens and enables one more endpoint of the domain with these queues. The caller closes it. */
struct fid_ep *ofi_pair_new_ep(struct ofi_pair *p, struct fid_cq *tx, struct fid_cq *rx);

/**
 * Reads one completion. Returns the first result of fi_cq_read but -FI_EAGAIN, within ten seconds.
 */
ssize_t ofi_read(struct fid_cq *cq, void *entry);
/** Reads one completion while both queues make progress. */
ssize_t ofi_pair_read(struct ofi_pair *p, int which, void *entry);
/** Expects this completion as the next one of end `which`. */
void ofi_pair_expect(struct ofi_pair *p, int which, uint64_t flags, const void *context);
/** Expects this error as the next completion of end `which`. */
void ofi_pair_expect_error(struct ofi_pair *p, int which, uint64_t flags, int err,
			   const void *context);
/** Repeats a transfer while it returns -FI_EAGAIN, making progress on both ends. */
#define OFI_RETRY(p, call)                                                                         \
	({                                                                                         \
		ssize_t ofi_ret;                                                                   \
		while ((ofi_ret = (call)) == -FI_EAGAIN)                                           \
			ofi_pair_progress(p);                                                      \
		ofi_ret;                                                                           \
	})
void ofi_pair_progress(struct ofi_pair *p);

/**
 * Opens domain, AV, one queue and one endpoint (context p), nothing bound; then binds both
 * directions.
 */
void ofi_open_unbound(struct ofi_pair *p);
void ofi_bind_all(struct ofi_pair *p);

/** A thread that makes a signal handler of the caller run each ten milliseconds. */
struct ofi_kicker {
	pthread_t sleeper, thread;
	bool over;
};

void ofi_kicker_start(struct ofi_kicker *kicker);
void ofi_kicker_stop(struct ofi_kicker *kicker);

#endif
