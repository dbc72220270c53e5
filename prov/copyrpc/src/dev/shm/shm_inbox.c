/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Doorbell of the inbox, a pair of sockets for sleeping readers: the rare part of shm_inbox.h. */
#include "dev/shm/shm_inbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/log.h"

#define SHM_BELL_TYPE  SOCK_SEQPACKET
#define SHM_BELL_DRAIN 16 /* messages that one wake takes, whatever peers send */

void shm_inbox_ring(struct shm_inbox *inbox, int bell_fd)
{
	uint32_t number = __atomic_load_n(&inbox->sleeping, __ATOMIC_SEQ_CST);
	ssize_t ret;

	if (!number)
		return;
	/* Fails if the bell is readable already, or if the reader has died. */
	ret = send(bell_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)ret;
	/* Fails if the reader has woken since: another sleep has another number. */
	__atomic_compare_exchange_n(&inbox->sleeping, &number, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

void shm_inbox_sleep(struct shm_inbox *inbox, uint32_t *number)
{
	*number = (*number + 2) | 1;
	__atomic_store_n(&inbox->sleeping, *number, __ATOMIC_SEQ_CST);
}

bool shm_inbox_wake(struct shm_inbox *inbox, int bell_fd)
{
	char byte[1];
	int cnt = 0;

	__atomic_store_n(&inbox->sleeping, 0, __ATOMIC_SEQ_CST);
	/* The end counts too: after a peer has shut the socket down the reader does not sleep. */
	while (cnt < SHM_BELL_DRAIN && recv(bell_fd, byte, sizeof(byte), MSG_DONTWAIT) >= 0)
		cnt++;
	return cnt;
}

int shm_bell_create(struct shm_bell *bell)
{
	int fds[2], err;

	if (!socketpair(AF_UNIX, SHM_BELL_TYPE | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds)) {
		*bell = (struct shm_bell){ .read_fd = fds[0], .write_fd = fds[1] };
		return 0;
	}
	err = errno;
	UTIL_WARN_SELDOM(FABRIC, "socketpair: %s%s\n", strerror(err),
			 err == EMFILE ? " (raise the limit on open files: ulimit -n)" : "");
	return err == EMFILE || err == ENFILE ? -FI_EMFILE : -FI_ENOMEM;
}

void shm_bell_close(const struct shm_bell *bell)
{
	close(bell->read_fd);
	close(bell->write_fd);
}

static bool shm_bell_option_is(int fd, int option, int expected)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return !getsockopt(fd, SOL_SOCKET, option, &value, &len) && value == expected;
}

int shm_bell_check(int fd)
{
	if (shm_bell_option_is(fd, SO_DOMAIN, AF_UNIX) &&
	    shm_bell_option_is(fd, SO_TYPE, SHM_BELL_TYPE))
		return 0;
	UTIL_WARN(FABRIC, "peer's doorbell refused: not a local socket of packets\n");
	return -FI_EINVAL;
}
