/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The entry: see cpr_prov.h. */
#include "ofi/cpr_prov.h"

#include "ofi/cpr_fabric.h"
#include "ofi/cpr_info.h"
#include "util/log.h"
#include "util/param.h"

FI_EXT_INI
{
	util_log_prov.name = "copyrpc";
	util_log_prov.version = CPR_PROV_VERSION;
	/* One build serves every libfabric from 1.17 on: it skips providers older than itself. */
	util_log_prov.fi_version = fi_version();
	util_log_prov.getinfo = cpr_getinfo;
	util_log_prov.fabric = cpr_fabric_open;
	util_log_prov.cleanup = cpr_fabric_stop_all;
	util_param_define(&util_log_prov);
	util_param_load(&util_log_prov);
	return &util_log_prov;
}
