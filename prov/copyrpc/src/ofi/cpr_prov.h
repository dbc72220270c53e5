/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entry point of the provider, called by libfabric.
 *
 * libfabric opens libcopyrpc-fi.so and calls fi_prov_ini, the one exported symbol. fi_prov_ini
 * publishes and reads the parameters and fills in the provider's calls; no device is probed there.
 * fi_provider.cleanup stops the threads of domains that the application left open.
 */
#ifndef OFI_CPR_PROV_H
#define OFI_CPR_PROV_H

#include <rdma/providers/fi_prov.h>

#define CPR_PROV_VERSION FI_VERSION(0, 2)

struct fi_provider *fi_prov_ini(void);

#endif
