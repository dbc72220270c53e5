/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bulk copies between two processes, with one copy: get and put of a link, and the parts of
 * shm_share and shm_expose.
 *
 * process_vm_readv(2) and process_vm_writev(2) run in the calling thread. connect proves the
 * permission by reading 16 random bytes that the peer announced. It can be lost later (prctl, a
 * security module): then the link loses the capability and the transfer fails.
 *
 * A pid may be reused before the peer's death is noticed. So the proof is repeated before each
 * chunk when it is older than SHM_PROOF_NS. The kernel reuses a pid only after all others (pid_max,
 * 32768 and more), which takes far longer than SHM_PROOF_NS and a chunk together. Reading the 16
 * bytes after every transfer would be exact, but costs 0.4 us of 2.4 at 16 KiB.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "dev/shm/shm_link.h"
#include "dev/shm/shm_share.h"
#include "util/clock.h"
#include "util/log.h"

#define SHM_BULK_IOV   64u
#define SHM_BULK_CHUNK ((size_t)16 << 20)
#define SHM_PROOF_NS   (10 * UTIL_NS_PER_MS)

/** Ranges of one system call. */
struct shm_chunk {
	struct iovec local[SHM_BULK_IOV];
	size_t iov_cnt;
	struct iovec remote;
};

enum shm_probe_result shm_probe(const struct shm_probe *probe)
{
	uint64_t nonce[2] = { 0, 0 };
	struct iovec local = { nonce, sizeof(nonce) };
	struct iovec remote = { (void *)(uintptr_t)probe->addr, sizeof(nonce) };
	ssize_t got = process_vm_readv(probe->pid, &local, 1, &remote, 1, 0);

	if (got == sizeof(nonce))
		return memcmp(nonce, probe->nonce, sizeof(nonce)) ? SHM_PROBE_GONE : SHM_PROBE_SAME;
	return got < 0 && (errno == ESRCH || errno == EFAULT) ? SHM_PROBE_GONE : SHM_PROBE_HIDDEN;
}

bool shm_probe_check(const struct shm_probe *probe)
{
	return shm_probe(probe) == SHM_PROBE_SAME;
}

static int shm_bulk_fault(struct shm_link *link, int err)
{
	if (err == ESRCH)
		return -FI_ECONNRESET;
	UTIL_WARN(EP_DATA, "memory of peer %d is out of reach: %s\n", (int)link->peer.pid,
		  strerror(err));
	if (err == EPERM)
		link->base.caps &= ~(uint32_t)(DEV_CAP_GET | DEV_CAP_PUT);
	return err == EPERM ? -FI_EPERM : err == EFAULT ? -FI_EFAULT : -FI_ENOMEM;
}

/*
 * Repeats the proof if it is old. Returns 0, -FI_ECONNRESET if the peer is gone, or -FI_EPERM if
 * its memory may no longer be read.
 */
static int shm_bulk_prove(struct shm_link *link)
{
	uint64_t now = util_clock_ns();
	enum shm_probe_result result;

	if (link->proven_ns && now - link->proven_ns < SHM_PROOF_NS)
		return 0;
	result = shm_probe(&link->peer);
	if (result != SHM_PROBE_SAME)
		return shm_bulk_fault(link, result == SHM_PROBE_GONE ? ESRCH : EPERM);
	link->proven_ns = now;
	return 0;
}

/*
 * Collects local ranges from byte `done` on, as many as one call takes. 0 bytes: iov is too short.
 */
static void shm_chunk_fill(struct shm_chunk *chunk, const struct dev_get *get, size_t done)
{
	size_t left = get->len - done, skip = done, sum = 0, i, len;

	if (left > SHM_BULK_CHUNK)
		left = SHM_BULK_CHUNK;
	chunk->iov_cnt = 0;
	for (i = 0; i < get->iov_cnt && sum < left && chunk->iov_cnt < SHM_BULK_IOV; i++) {
		len = get->iov[i].iov_len;
		if (skip >= len) {
			skip -= len;
			continue;
		}
		len -= skip;
		if (len > left - sum)
			len = left - sum;
		chunk->local[chunk->iov_cnt].iov_base = (uint8_t *)get->iov[i].iov_base + skip;
		chunk->local[chunk->iov_cnt++].iov_len = len;
		sum += len;
		skip = 0;
	}
	chunk->remote.iov_base = (void *)(uintptr_t)(get->remote_addr + done);
	chunk->remote.iov_len = sum;
}

typedef ssize_t (*shm_vm_fn)(pid_t pid, const struct iovec *local, unsigned long local_cnt,
			     const struct iovec *remote, unsigned long remote_cnt,
			     unsigned long flags);

/* Makes one call. Returns the bytes moved, perhaps fewer than the chunk has, or an error. */
static ssize_t shm_bulk_step(struct shm_link *link, const struct dev_get *get, size_t done,
			     shm_vm_fn move)
{
	struct shm_chunk chunk;
	ssize_t moved;
	int rc;

	shm_chunk_fill(&chunk, get, done);
	if (!chunk.remote.iov_len)
		return -FI_EINVAL;
	rc = shm_bulk_prove(link);
	if (rc)
		return rc;
	moved = move(link->peer.pid, chunk.local, chunk.iov_cnt, &chunk.remote, 1, 0);
	return moved > 0 ? moved : shm_bulk_fault(link, moved ? errno : EFAULT);
}

/** Moves bytes [from, to) of the transfer. */
static void shm_bulk_run(struct shm_link *link, struct dev_get *get, size_t from, size_t to,
			 shm_vm_fn move)
{
	struct dev_get part = *get;
	ssize_t moved;

	part.len = to;
	while (!get->status && from < to) {
		moved = shm_bulk_step(link, &part, from, move);
		if (moved < 0)
			get->status = (int)moved;
		else
			from += (size_t)moved;
	}
}

void shm_bulk_get_part(struct shm_link *link, struct dev_get *get, uint64_t from, uint64_t to)
{
	get->status = link->base.caps & DEV_CAP_GET ? 0 : -FI_EPERM;
	shm_bulk_run(link, get, from, to, process_vm_readv);
}

bool shm_bulk_get_vec(struct shm_link *link, const struct shm_vec *vec)
{
	return (link->base.caps & DEV_CAP_GET) && !shm_bulk_prove(link) &&
	       process_vm_readv(link->peer.pid, vec->local, vec->cnt, vec->remote, vec->cnt, 0) ==
		       (ssize_t)vec->len;
}

bool shm_bulk_put_vec(struct shm_link *link, const struct iovec *local, size_t cnt,
		      const struct iovec *remote, size_t remote_cnt, size_t len)
{
	return (link->base.caps & DEV_CAP_PUT) && !shm_bulk_prove(link) &&
	       process_vm_writev(link->peer.pid, local, cnt, remote, remote_cnt, 0) == (ssize_t)len;
}

/** Ends at once with -FI_EPERM if the peer's memory is out of reach. */
int shm_link_get(struct dev_link *base, struct dev_get *get)
{
	struct shm_link *link = (struct shm_link *)base;

	get->status = base->caps & DEV_CAP_GET ? 0 : -FI_EPERM;
	return get->status ? 1 : shm_share_get(link, get);
}

int shm_link_put(struct dev_link *base, struct dev_get *get)
{
	get->status = base->caps & DEV_CAP_PUT ? 0 : -FI_EPERM;
	shm_bulk_run((struct shm_link *)base, get, 0, get->len, process_vm_writev);
	return 1;
}
