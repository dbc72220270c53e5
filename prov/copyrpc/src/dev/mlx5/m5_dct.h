/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs of DC: the device's target, and its initiators (m5_dcis.h). Called by m5_dev.c and
 * m5_link.c.
 *
 * There is one target (DCT) per device, on its shared receive queue and receive CQ. It is made with
 * the device, which is also how it is found out whether the adapter has DC; the initiators are made
 * with the first link that needs them.
 *
 * Tests: on the device model test/integ/dev/dev_link.
 */
#ifndef DEV_MLX5_M5_DCT_H
#define DEV_MLX5_M5_DCT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "dev/mlx5/m5_dcis.h"
#include "dev/mlx5/m5_ids.h"

struct m5_dev;

/** DC objects of a device. */
struct m5_dc {
	uint32_t dctn; /* number of the target; 0: the device has none */
	struct m5_dcis pool;

	/* Rarely used. */
	uint64_t key; /* access key: random, known to the peers of the process only */
	struct ibv_qp *dct;
	struct m5_ids *ids; /* protected by the device's lock */
};

/** Makes the target. Without one, the device has no DC: logged at INFO. */
void m5_dct_open(struct m5_dev *dev);
/** Destroys the target and the initiators. No link is left. */
void m5_dct_close(struct m5_dev *dev);

/** Makes the initiators once. Called under the lock. Returns 0 or an error, logged. */
int m5_dct_make_pool(struct m5_dev *dev);

/**
 * Stops a DCI, drops all that was posted to it, and starts it again. One that does not start, as
 * its port has no address now, is not used before m5_dct_restart has succeeded.
 */
void m5_dct_reset(struct m5_dev *dev, struct m5_dci *dci);
/** Tries again to start those that did not, and hands them to links that wait. */
void m5_dct_restart(struct m5_dev *dev);

#endif
