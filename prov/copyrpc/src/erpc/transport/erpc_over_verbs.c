/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transport over unreliable datagrams (UD) of any RDMA device, through libibverbs. */
#include "dev/verbs/vb.h"
#include "dev/verbs/vb_ud.h"
#include "erpc/transport/erpc_outage.h"
#include "erpc/transport/erpc_transport.h"
#include "wire/wire_cm.h"

#define ERPC_VERBS_RATE 3.125e9 /* bytes per second: a session at this rate is not paced */

static int erpc_verbs_probe(struct dev_about *about)
{
	return vb_dev_ops.probe ? vb_dev_ops.probe(about) : 0;
}

static const struct erpc_transport_dev erpc_verbs_dev = {
	.dgram = &vb_dgram_ops,
	.dev = &vb_dev_ops,
	.rx_cnt = 2048,
	.tx_cnt = 256,
	.link_rate = ERPC_VERBS_RATE,
};

static int erpc_verbs_open(struct eng_transport *transport)
{
	return erpc_transport_open(transport, &erpc_verbs_dev);
}

const struct eng_transport_ops erpc_transport_verbs =
	ERPC_TRANSPORT_OPS(WIRE_CM_PATH_UD, "verbs", erpc_verbs_open, .probe = erpc_verbs_probe,
			   .health = erpc_outage_health, .reopen = erpc_outage_reopen);
