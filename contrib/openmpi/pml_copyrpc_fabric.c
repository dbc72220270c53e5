/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opens and closes the libfabric objects: fabric, domain, address vector, completion queue and one
 * endpoint for tagged messages. Called when the component is selected and when it ends.
 */
#include <stdlib.h>
#include <string.h>

#include "pml_copyrpc.h"
#include "pml_copyrpc_key.h"

/* FI_PROVIDER has selected already if it is set, so no further name is asked for. */
static const char *fabric_provider(void)
{
	if (pml.provider && *pml.provider)
		return pml.provider;
	return getenv("FI_PROVIDER") ? NULL : "copyrpc";
}

/* libfabric reads the variable in its first call of the process. */
static void fabric_set_path(void)
{
	if (pml.provider_path && *pml.provider_path)
		setenv("FI_PROVIDER_PATH", pml.provider_path, 0);
}

/*
 * The launcher's secret keeps strangers out of the job, unless the user has chosen a key. The
 * provider reads the variable when libfabric opens it.
 */
static void fabric_set_key(void)
{
	const char *key = getenv(PML_KEY_VARIABLE);

	pml.has_key = pml.use_key && !getenv("FI_COPYRPC_JOB_KEY") && pml_key_is_secret(key) &&
		      setenv("FI_COPYRPC_JOB_KEY", key, 1) == 0;
}

static struct fi_info *fabric_hints(bool threads, bool directed, bool match)
{
	const char *provider = fabric_provider();
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_TAGGED | (directed ? FI_DIRECTED_RECV : 0);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
	hints->tx_attr->op_flags |= match ? FI_MATCH_COMPLETE : 0;
	hints->domain_attr->threading = threads ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

static int fabric_ask(bool threads, bool directed, bool match)
{
	struct fi_info *hints = fabric_hints(threads, directed, match);
	int rc;

	if (!hints)
		return -FI_ENOMEM;
	rc = fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, hints, &pml.info);
	fi_freeinfo(hints);
	pml.directed = directed && rc == 0;
	pml.match = match && rc == 0;
	if (rc)
		return rc;
	pml.info->tx_attr->op_flags |= FI_COMPLETION; /* the queue is selective */
	pml.info->tx_attr->op_flags &= ~FI_MATCH_COMPLETE;
	return 0;
}

/* Only a provider whose hints had the flag is known to have it. */
static int fabric_find(bool threads, bool directed)
{
	int rc = pml.use_match ? fabric_ask(threads, directed, true) : -FI_ENODATA;

	return rc ? fabric_ask(threads, directed, false) : 0;
}

static int fabric_open_queue(void)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av = { .type = pml.info->domain_attr->av_type };
	int rc = fi_cq_open(pml.domain, &cq, &pml.cq, NULL);

	return rc ? rc : fi_av_open(pml.domain, &av, &pml.av, NULL);
}

static int fabric_open_endpoint(void)
{
	int rc = fi_endpoint(pml.domain, pml.info, &pml.ep, NULL);

	if (rc == 0)
		rc = fi_ep_bind(pml.ep, &pml.av->fid, 0);
	if (rc == 0)
		rc = fi_ep_bind(pml.ep, &pml.cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (rc == 0)
		rc = fi_ep_bind(pml.ep, &pml.cq->fid, FI_RECV);
	return rc ? rc : fi_enable(pml.ep);
}

/*
 * Longest message without a request. A provider may inject long ones in pieces, for which it needs
 * progress that a sender without a request does not make: copyrpc where a ring is small.
 */
#define SILENT_MAX 2048

/*
 * Opens the alias for short sends. Without one, or if each operation needs a context of its own
 * until its end, all sends have a request.
 */
static void fabric_open_alias(void)
{
	pml.silent_end = 0;
	if ((pml.info->mode & (FI_CONTEXT | FI_CONTEXT2)) ||
	    fi_ep_alias(pml.ep, &pml.silent_ep, FI_TRANSMIT | FI_INJECT) != 0)
		pml.silent_ep = NULL;
	else
		pml.silent_end = (pml.inject_size < SILENT_MAX ? pml.inject_size : SILENT_MAX) + 1;
}

/* Opens the alias for synchronous sends. */
static void fabric_open_match(void)
{
	if (!pml.match ||
	    fi_ep_alias(pml.ep, &pml.match_ep, FI_TRANSMIT | FI_COMPLETION | FI_MATCH_COMPLETE))
		pml.match_ep = NULL;
}

/*
 * Opens the alias for blocking sends that are too long to be injected. Without FI_INJECT_COMPLETE
 * they would wait for the acknowledgement of the peer.
 */
static void fabric_open_blocking(void)
{
	if (fi_ep_alias(pml.ep, &pml.copied_ep, FI_TRANSMIT | FI_COMPLETION | FI_INJECT_COMPLETE))
		pml.copied_ep = NULL;
	pml.blocking_ep = pml.copied_ep ? pml.copied_ep : pml.ep;
}

static int fabric_open_all(bool threads)
{
	int rc;

	fabric_set_path();
	fabric_set_key();
	rc = pml.use_directed ? fabric_find(threads, true) : -FI_ENODATA;

	if (rc)
		rc = fabric_find(threads, false);
	if (rc == 0)
		rc = fi_fabric(pml.info->fabric_attr, &pml.fabric, NULL);
	if (rc == 0)
		rc = fi_domain(pml.fabric, pml.info, &pml.domain, NULL);
	if (rc == 0)
		rc = fabric_open_queue();
	return rc ? rc : fabric_open_endpoint();
}

/** Opens everything. Returns OMPI_SUCCESS, or an error after a line that says what is missing. */
int pml_fabric_open(bool threads)
{
	const char *provider = fabric_provider();
	int rc = fabric_open_all(threads);

	if (rc) {
		opal_output(0,
			    "pml copyrpc: no endpoint for tagged messages of provider %s: %s. "
			    "FI_PROVIDER and FI_PROVIDER_PATH select it, see copyrpc_env(1); "
			    "copyrpc_info tells what is wrong",
			    provider ? provider : getenv("FI_PROVIDER"), fi_strerror(-rc));
		pml_fabric_close();
		return OMPI_ERR_NOT_AVAILABLE;
	}
	pml.inject_size = pml.info->tx_attr->inject_size;
	pml.recv_detours = (size_t)threads + !pml.directed;
	fabric_open_alias();
	fabric_open_match();
	fabric_open_blocking();
	opal_output_verbose(1, pml.output, "pml copyrpc: provider %s, fabric %s%s%s%s%s",
			    pml.info->fabric_attr->prov_name, pml.info->fabric_attr->name,
			    pml.directed ? ", directed receives" : "",
			    pml.silent_ep ? ", short sends without requests" : "",
			    pml.match_ep ? ", match completions" : "",
			    pml.has_key ? ", the launcher's secret as the job key" : "");
	return OMPI_SUCCESS;
}

static void fabric_close(struct fid **fid)
{
	if (*fid)
		(void)fi_close(*fid);
	*fid = NULL;
}

void pml_fabric_close(void)
{
	fabric_close((struct fid **)&pml.silent_ep);
	fabric_close((struct fid **)&pml.match_ep);
	fabric_close((struct fid **)&pml.copied_ep);
	fabric_close((struct fid **)&pml.ep);
	fabric_close((struct fid **)&pml.av);
	fabric_close((struct fid **)&pml.cq);
	fabric_close((struct fid **)&pml.domain);
	fabric_close((struct fid **)&pml.fabric);
	if (pml.info)
		fi_freeinfo(pml.info);
	pml.info = NULL;
}
