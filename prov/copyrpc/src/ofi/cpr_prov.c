/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Entry point of the provider: see cpr_prov.h. */
#include "ofi/cpr_prov.h"

#include <stdbool.h>
#include <string.h>

#include "ofi/base/cpr_fabric.h"
#include "ofi/info/cpr_info.h"
#include "util/log.h"
#include "util/param.h"

/*
 * Layout of fi_provider.context in libfabric's core, from 1.17 to 2.x. With disable_layering set, a
 * utility provider that looks for a core provider skips this one. cpr_getinfo declines such
 * requests as well, but each refusal is a warning in the user's log.
 */
struct cpr_prov_context {
	int type;
	bool disable_logging;
	bool disable_layering;
};

/* Returns true if FI_PROVIDER names a layer above this provider, as in "copyrpc;ofi_rxm". */
static bool cpr_prov_is_layer_named(const struct fi_provider *prov)
{
	char *names = NULL;
	const char *at;

	if (fi_param_get(NULL, "provider", &names) || !names || names[0] == '^')
		return false;
	for (at = strstr(names, prov->name); at; at = strstr(at + 1, prov->name))
		if (at[strlen(prov->name)] == ';' || (at > names && at[-1] == ';'))
			return true;
	return false;
}

static void cpr_prov_decline_layers(struct fi_provider *prov)
{
	struct cpr_prov_context *context = (struct cpr_prov_context *)&prov->context;

	if (cpr_prov_is_layer_named(prov))
		util_params.layering = 1;
	if (FI_MAJOR(fi_version()) <= 2)
		context->disable_layering = !util_params.layering;
}

FI_EXT_INI
{
	util_log_prov.name = "copyrpc";
	util_log_prov.version = CPR_PROV_VERSION;
	/*
	 * Version of the running libfabric: it skips providers older than itself. One build serves
	 * all versions from 1.17 on.
	 */
	util_log_prov.fi_version = fi_version();
	util_log_prov.getinfo = cpr_getinfo;
	util_log_prov.fabric = cpr_fabric_open;
	util_log_prov.cleanup = cpr_fabric_stop_all;
	util_param_define(&util_log_prov);
	util_param_load(&util_log_prov);
	cpr_prov_decline_layers(&util_log_prov);
	return &util_log_prov;
}
