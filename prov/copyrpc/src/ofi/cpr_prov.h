/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How does libfabric find us?
 *
 * It opens libcopyrpc-fi.so and calls fi_prov_ini, the one exported symbol. There is nothing to
 * probe: parameters are published and read, the provider's calls are filled in. At the end
 * cleanup() stops the threads of domains that the application left open.
 */
#ifndef CPR_PROV_H
#define CPR_PROV_H

#include <rdma/providers/fi_prov.h>

#define CPR_PROV_VERSION FI_VERSION(0, 1)

struct fi_provider *fi_prov_ini(void);

#endif
