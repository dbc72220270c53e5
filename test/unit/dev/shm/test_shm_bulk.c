/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dev/shm/shm.h"
#include "dev/shm/shm_desc.h"
#include "dev/shm/shm_link.h"
#include "util/clock.h"
#include "util/param.h"

#include "shm_pair.h"

TestSuite(shm_bulk, .fini = pair_fini, .timeout = 200);

#define LEN (40u << 20) /* more than one chunk */

/** Peer process that sleeps. Both processes have `area` at one address: 1s here, 2s there. */
struct peer {
	struct shm_dev *dev;
	struct transport transport;
	pid_t pid;
	uint8_t *area;
	int sock;
};

static void peer_start(struct peer *p)
{
	int sv[2];
	char c;

	util_params.single_copy = 1;
	p->area = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	p->pid = fork();
	cr_assert_geq(p->pid, 0);
	p->sock = sv[!p->pid];
	close(sv[!!p->pid]);
	memset(p->area, p->pid ? 1 : 2, LEN);
	p->dev = pair_dev();
	pair_join(p->dev, &p->transport, 4096, p->sock);
	if (p->pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(p->sock, &c, 1) == 1) /* sends a byte of its area for each byte received */
		cr_assert_eq(write(p->sock, p->area, 4096), 4096);
	_exit(0);
}

static void peer_kill(struct peer *p)
{
	kill(p->pid, SIGKILL);
	cr_assert_eq(waitpid(p->pid, NULL, 0), p->pid);
}

static int get(struct peer *p, struct dev_get *g)
{
	struct dev_event ev = { 0 };

	g->status = 1;
	if (!p->transport.link->ops->get(p->transport.link, g)) {
		while (!shm_dev_ops.poll((struct dev *)p->dev, &ev))
			;
		cr_assert(ev.kind == DEV_EV_GET && ev.get == g && ev.link == p->transport.link);
	}
	return g->status;
}

static int put(struct peer *p, struct dev_get *g)
{
	g->status = 1;
	cr_assert_eq(p->transport.link->ops->put(p->transport.link, g), 1);
	return g->status;
}

static uint64_t addr_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

Test(shm_bulk, a_get_copies_the_peers_bytes_in_several_chunks)
{
	struct peer p;
	uint8_t *dst = malloc(LEN);
	/* The first chunk of 16 MiB ends inside the first piece. */
	struct iovec iov[] = { { dst, 17u << 20 }, { dst + (17u << 20), LEN - (17u << 20) } };
	struct dev_get g = { .iov = iov, .iov_cnt = 2, .len = LEN };
	size_t i;

	peer_start(&p);
	cr_assert(p.transport.link->caps & DEV_CAP_GET);
	g.remote_addr = addr_of(p.area);
	cr_assert_eq(get(&p, &g), 0);
	for (i = 0; i < LEN; i++)
		cr_assert_eq(dst[i], 2);
	peer_kill(&p);
	free(dst);
}

Test(shm_bulk, pieces_are_filled_in_order_and_not_beyond_len)
{
	static uint8_t dst[1000][3];
	struct iovec iov[1001];
	struct dev_get g = { .iov = iov, .iov_cnt = 1001, .len = 2500 };
	struct peer p;
	int i;

	memset(dst, 7, sizeof(dst));
	for (i = 0; i < 1000; i++)
		iov[i + (i >= 500)] = (struct iovec){ dst[i], 3 };
	iov[500] = (struct iovec){ NULL, 0 };
	peer_start(&p);
	g.remote_addr = addr_of(p.area) + 4095;
	cr_assert_eq(get(&p, &g), 0);
	for (i = 0; i < 3000; i++)
		cr_assert_eq(((uint8_t *)dst)[i], i < 2500 ? 2 : 7, "byte %d", i);
	peer_kill(&p);
}

Test(shm_bulk, put_reaches_the_peers_memory)
{
	uint8_t src[100], seen[4096];
	struct iovec iov = { src, sizeof(src) };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(src) };
	struct peer p;
	int i;

	memset(src, 9, sizeof(src));
	peer_start(&p);
	cr_assert(p.transport.link->caps & DEV_CAP_PUT);
	g.remote_addr = addr_of(p.area) + 50;
	cr_assert_eq(put(&p, &g), 0);
	cr_assert_eq(write(p.sock, "", 1), 1);
	cr_assert_eq(recv(p.sock, seen, sizeof(seen), MSG_WAITALL), (ssize_t)sizeof(seen));
	for (i = 0; i < 4096; i++)
		cr_assert_eq(seen[i], i >= 50 && i < 150 ? 9 : 2, "byte %d", i);
	peer_kill(&p);
}

Test(shm_bulk, wrong_address_is_an_error)
{
	uint8_t dst[64];
	struct iovec iov = { dst, sizeof(dst) };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(dst) };
	struct peer p;

	peer_start(&p);
	g.remote_addr = 8;
	cr_expect_eq(get(&p, &g), -FI_EFAULT);
	g.remote_addr = UINT64_MAX - 8;
	cr_expect_eq(get(&p, &g), -FI_EFAULT);
	cr_expect_eq(put(&p, &g), -FI_EFAULT);
	g.remote_addr = addr_of(p.area) + LEN - 32; /* half of it */
	mprotect(p.area, LEN, PROT_NONE);           /* the local protection does not matter */
	cr_expect_neq(get(&p, &g), 1);
	g.remote_addr = addr_of(p.area);
	cr_expect_eq(get(&p, &g), 0, "the link still works");
	peer_kill(&p);
}

Test(shm_bulk, buffers_shorter_than_len_are_an_error)
{
	uint8_t dst[64];
	struct iovec iov = { dst, sizeof(dst) };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(dst) + 1 };
	struct peer p;

	peer_start(&p);
	g.remote_addr = addr_of(p.area);
	cr_expect_eq(get(&p, &g), -FI_EINVAL);
	g.len = 0;
	cr_expect_eq(get(&p, &g), 0);
	peer_kill(&p);
}

Test(shm_bulk, dead_peer_is_an_error)
{
	uint8_t dst[64];
	struct iovec iov = { dst, sizeof(dst) };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(dst) };
	struct peer p;

	peer_start(&p);
	g.remote_addr = addr_of(p.area);
	cr_expect_eq(get(&p, &g), 0);
	peer_kill(&p);
	cr_expect_eq(get(&p, &g), -FI_ECONNRESET);
	cr_expect_eq(put(&p, &g), -FI_ECONNRESET);
}

Test(shm_bulk, another_process_with_the_peers_pid_is_not_read)
{
	uint8_t dst[64] = { 0 };
	struct iovec iov = { dst, sizeof(dst) };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(dst) };
	struct peer p;

	peer_start(&p);
	pair_shm_link(&p.transport)->peer.nonce[1] ^= 1; /* not the proven process */
	g.remote_addr = addr_of(p.area);
	cr_expect_eq(get(&p, &g), -FI_ECONNRESET);
	cr_expect_eq(put(&p, &g), -FI_ECONNRESET);
	cr_expect_eq(dst[0], 0);
	peer_kill(&p);
}

/* `said` and `kernel`: the peer's process by its own word and by the kernel's. */
static uint32_t caps_with(uint64_t flip_nonce, int32_t said, pid_t kernel)
{
	struct shm_dev *a = pair_dev(), *b = pair_dev();
	struct dev_desc da, db;
	struct dev_link *la = pair_half(a, 1024, &da), *lb = pair_half(b, 1024, &db);
	struct shm_desc d;

	(void)lb;
	memcpy(&d, db.bytes, sizeof(d));
	d.nonce[0] ^= flip_nonce;
	d.pid = said;
	memcpy(db.bytes, &d, sizeof(d));
	db.pid = kernel;
	cr_assert_eq(la->ops->connect(la, &db), 0);
	cr_expect_eq(((struct shm_link *)la)->peer.pid, kernel);
	return la->caps & (DEV_CAP_GET | DEV_CAP_PUT);
}

Test(shm_bulk, the_capability_requires_a_proof)
{
	util_params.single_copy = 1;
	cr_expect_eq(caps_with(0, getpid(), getpid()), DEV_CAP_GET | DEV_CAP_PUT);
	cr_expect_eq(caps_with(1, getpid(), getpid()), 0);
	cr_expect_eq(caps_with(0, getpid(), INT32_MAX), 0);
}

/* A peer that names this process, whose nonce it has, must not make it copy its own memory. */
Test(shm_bulk, the_kernel_names_the_process_whatever_the_peer_says)
{
	util_params.single_copy = 1;
	cr_expect_eq(caps_with(0, getpid(), getppid()), 0);
	cr_expect_eq(caps_with(0, getpid(), 0), 0, "the kernel does not know it");
	cr_expect_eq(caps_with(0, getppid(), getpid()), DEV_CAP_GET | DEV_CAP_PUT);
}

Test(shm_bulk, the_capability_requires_permission)
{
	util_params.single_copy = 1;
	pair_forbid(SYS_process_vm_readv, EPERM);
	cr_expect_eq(caps_with(0, getpid(), getpid()), 0);
}

Test(shm_bulk, capability_can_be_switched_off)
{
	util_params.single_copy = 0;
	cr_expect_eq(caps_with(0, getpid(), getpid()), 0);
}

Test(shm_bulk, without_the_capability_no_byte_is_moved)
{
	uint8_t dst[64] = { 0 };
	struct iovec iov = { dst, sizeof(dst) };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(dst) };
	struct peer p;

	peer_start(&p);
	p.transport.link->caps &= ~(uint32_t)DEV_CAP_GET;
	g.remote_addr = addr_of(p.area);
	cr_expect_eq(get(&p, &g), -FI_EPERM);
	cr_expect_eq(dst[0], 0);
	peer_kill(&p);
}

/** Forbids access after a first get; `proven_ns` is the time of the proof that the link holds. */
static void lose_permission(uint64_t proven_ns)
{
	uint8_t dst[64];
	struct iovec iov = { dst, sizeof(dst) };
	struct dev_get g = { .iov = &iov, .iov_cnt = 1, .len = sizeof(dst) };
	struct peer p;

	peer_start(&p);
	g.remote_addr = addr_of(p.area);
	cr_assert_eq(get(&p, &g), 0);
	pair_forbid(SYS_process_vm_readv, EPERM);
	pair_forbid(SYS_process_vm_writev, EPERM);
	((struct shm_link *)p.transport.link)->proven_ns = proven_ns;
	cr_expect_eq(get(&p, &g), -FI_EPERM);
	cr_expect_eq(p.transport.link->caps & (DEV_CAP_GET | DEV_CAP_PUT), 0);
	peer_kill(&p);
}

Test(shm_bulk, losing_permission_removes_the_capability)
{
	lose_permission(util_clock_ns());
}

Test(shm_bulk, losing_permission_is_no_death_when_the_proof_is_old)
{
	lose_permission(0);
}
