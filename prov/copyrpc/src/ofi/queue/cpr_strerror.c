/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Error texts: see cpr_strerror.h. */
#include "ofi/queue/cpr_strerror.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdio.h>

struct cpr_sentence {
	int err;
	const char *text;
};

static const struct cpr_sentence cpr_sentences[] = {
	{ FI_ECANCELED, "The receive was cancelled" },
	{ FI_ENOMSG, "No matching message has arrived" },
	{ FI_ETRUNC, "The message is longer than the buffer that was posted for it; olen says by "
		     "how many bytes" },
	{ FI_ECONNRESET, "The peer has died, or the connection to it broke; the next operation "
			 "connects anew" },
	{ FI_ECONNREFUSED, "No endpoint was reached at this address, or the peer refused; see the "
			   "logs of both" },
	{ FI_ECONNABORTED,
	  "The connection was given up while the operation was under way: the peer "
	  "was restarted or closed its endpoint" },
	{ FI_ETIMEDOUT, "The peer does not respond; FI_COPYRPC_PEER_TIMEOUT sets how long it "
			"may take" },
	{ FI_EHOSTUNREACH, "The host of the peer is unreachable" },
	{ FI_ENETUNREACH, "The network of the peer is unreachable" },
	{ FI_ESHUTDOWN, "The endpoint or its peer was closed" },
	{ FI_ENOTCONN, "The endpoint is not connected" },
	{ FI_EOVERRUN, "The queue had no memory for a completion: at least one is lost" },
	{ FI_ENOMEM, "No memory for the operation" },
	{ FI_EKEYREJECTED, "The peer has no memory region with this key, or it was closed" },
	{ FI_EACCES, "The memory region, or the peer, does not allow this access" },
	{ FI_EPERM, "The operating system does not allow this" },
	{ FI_EFAULT, "Memory of the operation is not mapped, here or at the peer" },
	{ FI_EMSGSIZE, "The message is longer than the largest one allowed, or a response than its "
		       "maximum size" },
	{ FI_EIO, "The device failed, or the peer sent invalid data; see the log" },
	{ FI_ENOPROTOOPT, "The peer and this end have no version of the protocol, or no path, in "
			  "common; see the log" },
	{ FI_EBADF,
	  "This is a forked child, and the queue is its parent's; open a domain in the child" },
	{ FI_ENOSPC, "Not enough room for shared memory: see ulimit -f, the memory limit of the "
		     "container, FI_COPYRPC_MEM and FI_COPYRPC_RING_SIZE" },
	{ FI_EMFILE, "Too many files are open; raise ulimit -n" },
	{ ENFILE, "The system has too many files open; raise fs.file-max (sysctl)" },
	{ FI_EADDRNOTAVAIL, "The address is not one of this host" },
	{ FI_EADDRINUSE, "The address is in use by another endpoint" },
};

static const char *cpr_sentence(int err)
{
	for (size_t i = 0; i < sizeof(cpr_sentences) / sizeof(cpr_sentences[0]); i++)
		if (cpr_sentences[i].err == err)
			return cpr_sentences[i].text;
	return fi_strerror(err);
}

const char *cpr_strerror(int prov_errno, char *buf, size_t len)
{
	const char *text = cpr_sentence(prov_errno < 0 ? -prov_errno : prov_errno);

	if (buf && len)
		snprintf(buf, len, "%s", text);
	return text;
}
