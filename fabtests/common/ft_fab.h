/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One endpoint with all objects it needs, and the addresses of the other processes' endpoints.
 *
 * A case describes its needs (struct ft_want; zero is the ordinary value) and calls ft_fab_open().
 * With -e rdm addresses are exchanged and inserted; with -e msg rank 0 listens and the others
 * connect to it. A feature that fi_getinfo does not offer ends the case as "notrun".
 *
 * Tests of single calls open piece by piece: ft_fab_find, ft_fab_domain, ft_fab_queues,
 * ft_fab_endpoint (created and bound), ft_fab_enable.
 *
 * Completions are read by ft_op.h only, which accounts for them.
 */
#ifndef FT_FAB_H
#define FT_FAB_H

#include "ft.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define FT_NAME_LEN 256

struct ft_ops;

struct ft_want {
	uint64_t caps;               /* 0: FI_MSG | FI_TAGGED */
	uint64_t mode;               /* in addition to FI_CONTEXT and FI_CONTEXT2 */
	uint64_t order;              /* message order, both ways */
	uint64_t tx_flags, rx_flags; /* default flags of operations */
	bool selective_tx, selective_rx;
	bool two_cqs, counters;
	bool shared;              /* endpoints with shared contexts: requested from fi_getinfo */
	bool events;              /* an event queue, bound to the endpoint, also with -e rdm */
	enum fi_cq_format format; /* 0: FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj wait;    /* 0: selected by option -c */
	enum fi_threading threading;
	enum fi_progress progress;
	enum fi_av_type av;
	int mr_mode; /* 0: the modern modes, which this suite can serve */
	bool alone;  /* no communication: names are not exchanged */
	const char *port;
};

struct ft_fab {
	struct ft *ft;
	struct ft_want want;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av; /* NULL with -e msg */
	struct fid_cq *tx_cq, *rx_cq;
	struct fid_cntr *tx_cntr, *rx_cntr; /* NULL unless requested */
	struct fid_eq *eq;                  /* with -e msg, or requested */
	struct fid_pep *pep;                /* rank 0 with -e msg */
	struct fid_ep *ep;
	fi_addr_t addr[FT_PROCS_MAX];         /* addresses of all ranks, this one included */
	char name[FT_PROCS_MAX][FT_NAME_LEN]; /* names as returned by fi_getname */
	size_t name_len;
	struct ft_ops *ops;
};

struct fi_info *ft_fab_hints(const struct ft *ft, const struct ft_want *want);
/** Finds an fi_info that meets the hints, or ends the case with "notrun". */
void ft_fab_find(struct ft_fab *fab, struct ft *ft, const struct ft_want *want);
void ft_fab_domain(struct ft_fab *fab);
void ft_fab_queues(struct ft_fab *fab);
void ft_fab_endpoint(struct ft_fab *fab);
void ft_fab_enable(struct ft_fab *fab);
/** Exchanges and inserts addresses: with -e rdm. All processes of the case call it. */
void ft_fab_meet(struct ft_fab *fab);

/**
 * Opens all of it; connects with -e msg. From then on it makes progress while this process waits.
 */
void ft_fab_open(struct ft_fab *fab, struct ft *ft, const struct ft_want *want);
/** Closes everything in order; every fi_close must return 0. */
void ft_fab_close(struct ft_fab *fab);
/** Closes one object, which must succeed, and sets the pointer to NULL. */
#define FT_CLOSE(object)                                                                           \
	do {                                                                                       \
		FT_OK(fi_close(&(object)->fid));                                                   \
		(object) = NULL;                                                                   \
	} while (0)

/** Makes progress without reading a completion. */
void ft_fab_progress(struct ft_fab *fab);

/* ft_cm.c */
/** Opens a passive endpoint at rank 0 of -e msg, and listens. */
void ft_cm_listen(struct ft_fab *fab);
/**
 * Waits at most `seconds` for the next event. Returns its kind, 0 if there was none, or -FI_E* with
 * the error in *err.
 */
int ft_cm_event(struct ft_fab *fab, struct fi_eq_cm_entry *entry, size_t len, ssize_t *got,
		struct fi_eq_err_entry *err, double seconds);
/** Connects the endpoints of two ranks. */
void ft_cm_join(struct ft_fab *fab);

#endif
