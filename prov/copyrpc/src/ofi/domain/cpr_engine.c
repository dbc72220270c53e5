/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engines, composed of transports: see cpr_engine.h. */
#include "ofi/base/cpr_engine.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/fault/flt.h"
#include "engine/eng_engine.h"
#include "engine/eng_node.h"
#include "erpc/transport/erpc_transports.h"
#include "ofi/base/cpr_nic.h"
#include "ofi/domain/cpr_paths.h"
#include "ring/ring_transports.h"
#include "util/log.h"
#include "util/param.h"

static const struct eng_transport_ops *const cpr_no_transports[] = { NULL };
static const struct eng_transport_ops *const cpr_rc_shm[] = { &ring_transport_shm, NULL };
static const struct eng_transport_ops *const cpr_rc_nic[] = { &ring_transport_mlx5,
							      &ring_transport_verbs, NULL };
static const struct eng_transport_ops *const cpr_rc_mlx5[] = { &ring_transport_mlx5, NULL };
static const struct eng_transport_ops *const cpr_rc_verbs[] = { &ring_transport_verbs, NULL };
static const struct eng_transport_ops *const cpr_ud_nic[] = { &erpc_transport_mlx5,
							      &erpc_transport_verbs, NULL };
static const struct eng_transport_ops *const cpr_ud_mlx5[] = { &erpc_transport_mlx5, NULL };
static const struct eng_transport_ops *const cpr_ud_verbs[] = { &erpc_transport_verbs, NULL };
static const struct eng_transport_ops *const cpr_udp[] = { &erpc_transport_udp, NULL };

static const struct cpr_path cpr_rc_paths[] = {
	{ "shm", cpr_rc_shm },   { "nic", cpr_rc_nic },     { "udp", cpr_udp },
	{ "mlx5", cpr_rc_mlx5 }, { "verbs", cpr_rc_verbs }, { 0 },
};

/* Shared memory of the host is left to rc. */
static const struct cpr_path cpr_ud_paths[] = {
	{ "shm", cpr_no_transports }, { "nic", cpr_ud_nic },     { "udp", cpr_udp },
	{ "mlx5", cpr_ud_mlx5 },      { "verbs", cpr_ud_verbs }, { 0 },
};

static int cpr_engine_paths(enum cpr_kind kind, bool log, struct cpr_paths *paths)
{
	return cpr_paths_read(kind == CPR_UD ? cpr_ud_paths : cpr_rc_paths, util_params.paths, log,
			      paths);
}

static int cpr_engine_open(enum cpr_kind kind, const struct core_upcalls *up,
			   struct core_progress **base)
{
	struct cpr_paths paths;
	struct core_engine *engine;
	int ret = flt_check(); /* here: a path that cannot be opened is left out */

	if (!ret)
		ret = cpr_engine_paths(kind, true, &paths);
	if (!ret)
		ret = eng_open(&paths.transports, up, &engine);
	if (!ret)
		*base = &engine->base;
	return ret;
}

static int cpr_engine_open_rc(const struct core_upcalls *up, struct core_progress **base)
{
	return cpr_engine_open(CPR_RC, up, base);
}

static int cpr_engine_open_ud(const struct core_upcalls *up, struct core_progress **base)
{
	return cpr_engine_open(CPR_UD, up, base);
}

/**
 * Opens the engine of cpr_engine_shm_first, which calls the progress of that transport directly.
 * Fails if shared memory is not the first transport.
 */
static int cpr_engine_open_shm(const struct core_upcalls *up, struct core_progress **base)
{
	int ret = cpr_engine_open_rc(up, base);

	if (ret || eng_transport_at(eng_engine_of(*base), 0)->ops == &ring_transport_shm)
		return ret;
	eng_close(*base);
	return -FI_ENODEV;
}

#define CPR_ENGINE(...)                                                                            \
	{                                                                                          \
		.close = eng_close, .arm = eng_arm, .disarm = eng_disarm, __VA_ARGS__              \
	}

/**
 * Engines for any transports in any order, and for shared memory in first place: its progress is
 * called without indirection.
 */
static const struct core_progress_ops cpr_engine_any =
	CPR_ENGINE(.name = "rc", .open = cpr_engine_open_rc, .progress = eng_progress);
static const struct core_progress_ops cpr_engine_shm_first =
	CPR_ENGINE(.name = "rc/shm", .open = cpr_engine_open_shm, .progress = ring_shm_progress);

static const struct core_progress_ops cpr_engine_ud =
	CPR_ENGINE(.name = "ud", .open = cpr_engine_open_ud, .progress = eng_progress);

const struct core_progress_ops *cpr_engine_of(enum cpr_kind kind)
{
	struct cpr_paths paths;

	if (kind == CPR_UD)
		return &cpr_engine_ud;
	if (!cpr_engine_paths(kind, false, &paths) &&
	    paths.transports.ops[0] == &ring_transport_shm)
		return &cpr_engine_shm_first;
	return &cpr_engine_any;
}

int cpr_engine_get_cm(struct cm_node **cm)
{
	return eng_node_get(cm);
}

void cpr_engine_halt_cm(void)
{
	eng_node_halt();
}

void cpr_engine_put_cm(struct cm_node *cm)
{
	eng_node_put(cm);
}

static bool cpr_engine_is_selected(enum cpr_kind kind)
{
	static bool logged;
	const char *only = util_params.endpoint;

	if (!only || !*only)
		return true;
	if (!strcmp(only, "rc"))
		return kind == CPR_RC;
	if (!strcmp(only, "ud"))
		return kind == CPR_UD;
	if (!logged)
		UTIL_WARN(FABRIC, "FI_COPYRPC_ENDPOINT=%s: write rc or ud, or leave it unset\n",
			  only);
	logged = true;
	return false;
}

int cpr_engine_check(enum cpr_kind kind)
{
	static bool logged;
	struct cpr_paths paths;

	if (!cpr_engine_is_selected(kind))
		return -FI_ENODATA;
	/*
	 * Of the two kinds rc has more paths: a failure is logged for rc, or for the kind that was
	 * selected.
	 */
	if (!cpr_engine_paths(kind, !logged && (kind == CPR_RC || util_params.endpoint), &paths))
		return 0;
	logged |= kind == CPR_RC || util_params.endpoint;
	return -FI_ENODATA;
}

int cpr_engine_nic(enum cpr_kind kind, struct fid_nic **nic)
{
	struct cpr_paths paths;

	*nic = NULL;
	if (cpr_engine_paths(kind, false, &paths) || !paths.nic)
		return 0;
	return cpr_nic_make(&paths.about, paths.nic->name, nic);
}
