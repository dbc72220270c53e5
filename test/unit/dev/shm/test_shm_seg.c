/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "dev/shm/shm_seg.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm_pair.h"

TestSuite(shm_seg, .fini = pair_fini, .timeout = 200);

#define LEN (3 * SHM_PAGE)

static int make(unsigned seals, off_t len, int allocate)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, len), 0);
	if (allocate)
		cr_assert_eq(fallocate(fd, 0, 0, len), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

Test(shm_seg, length_is_a_control_page_and_whole_pages_of_ring)
{
	cr_expect_eq(shm_seg_len(1024), 2 * SHM_PAGE);
	cr_expect_eq(shm_seg_len(SHM_PAGE), 2 * SHM_PAGE);
	cr_expect_eq(shm_seg_len(1 << 20), SHM_PAGE + (1 << 20));
}

Test(shm_seg, new_segment_is_zero_and_passes_its_own_check)
{
	uint8_t *map;
	void *addr;
	size_t i;
	int fd;

	cr_assert_eq(shm_seg_create("test", LEN, &fd), 0);
	cr_expect_eq(shm_seg_check(fd, LEN), 0);
	cr_assert_eq(shm_seg_map(fd, LEN, &addr), 0);
	for (i = 0, map = addr; i < LEN; i++)
		cr_assert_eq(map[i], 0);
	shm_seg_unmap(addr, LEN);
	close(fd);
}

Test(shm_seg, new_segment_can_neither_shrink_nor_grow)
{
	int fd;

	cr_assert_eq(shm_seg_create("test", LEN, &fd), 0);
	cr_expect_neq(ftruncate(fd, 0), 0);
	cr_expect_neq(ftruncate(fd, 2 * LEN), 0);
	cr_expect_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
}

Test(shm_seg, any_missing_seal_is_refused)
{
	static const unsigned seals[] = { 0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW,
					  F_SEAL_GROW | F_SEAL_SEAL, F_SEAL_SHRINK | F_SEAL_SEAL };
	size_t i;
	int fd;

	for (i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
		fd = make(seals[i], LEN, 1);
		cr_expect_eq(shm_seg_check(fd, LEN), -FI_EINVAL, "seals 0x%x", seals[i]);
		close(fd);
	}
}

Test(shm_seg, another_size_is_refused)
{
	int fd = make(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, LEN, 1);

	cr_expect_eq(shm_seg_check(fd, LEN), 0);
	cr_expect_eq(shm_seg_check(fd, LEN - 1), -FI_EINVAL);
	cr_expect_eq(shm_seg_check(fd, LEN + SHM_PAGE), -FI_EINVAL);
	close(fd);
}

Test(shm_seg, pages_that_are_not_allocated_are_refused)
{
	int fd = make(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, LEN, 0);

	cr_expect_eq(shm_seg_check(fd, LEN), -FI_EINVAL);
	close(fd);
}

Test(shm_seg, other_descriptors_are_refused)
{
	char path[] = "/tmp/copyrpc-test-XXXXXX";
	int file = mkstemp(path), fds[2];

	cr_assert_geq(file, 0);
	unlink(path);
	cr_assert_eq(ftruncate(file, LEN), 0);
	cr_assert_eq(pipe(fds), 0);
	cr_expect_eq(shm_seg_check(file, LEN), -FI_EINVAL);
	cr_expect_eq(shm_seg_check(fds[0], LEN), -FI_EINVAL);
	cr_expect_eq(shm_seg_check(-1, LEN), -FI_EINVAL);
}

Test(shm_seg, file_size_limit_is_an_error_and_no_signal)
{
	struct rlimit lim = { LEN - 1, LEN - 1 };
	int fd = -1;

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_expect_eq(shm_seg_create("test", LEN, &fd), -FI_ENOSPC);
	cr_expect_eq(fd, -1);
}

Test(shm_seg, no_memory_is_an_error_and_closes_the_file)
{
	int fd = -1, before = pair_fd_cnt();

	pair_forbid(SYS_fallocate, ENOSPC);
	cr_expect_eq(shm_seg_create("test", LEN, &fd), -FI_ENOSPC);
	cr_expect_eq(fd, -1);
	cr_expect_eq(pair_fd_cnt(), before);
}

Test(shm_seg, kernel_without_memfd_is_an_error)
{
	int fd = -1;

	pair_forbid(SYS_memfd_create, ENOSYS);
	cr_expect_eq(shm_seg_create("test", LEN, &fd), -FI_ENOSYS);
}

Test(shm_seg, a_probe_finds_what_the_system_refuses_and_leaves_nothing_open)
{
	static const int errors[] = { EPERM, ENOSYS, EACCES };
	int before = pair_fd_cnt();

	cr_expect_eq(shm_seg_probe(NULL), 0);
	cr_expect_eq(pair_fd_cnt(), before);
	for (unsigned i = 0; i < 3; i++) {
		pair_forbid(SYS_memfd_create, errors[i]);
		cr_expect_eq(shm_seg_probe(NULL), -FI_ENOSYS, "%s", strerror(errors[i]));
	}
}

Test(shm_seg, without_descriptors_a_probe_leaves_the_error_to_open)
{
	struct rlimit lim;
	int next = dup(0);

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	close(next);
	lim.rlim_cur = (rlim_t)next;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	cr_expect_eq(shm_seg_probe(NULL), 0);
}

Test(shm_seg, no_descriptor_is_an_error)
{
	struct rlimit lim;
	int fd = -1, next = dup(0);

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	close(next);
	lim.rlim_cur = (rlim_t)next;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	cr_expect_eq(shm_seg_create("test", LEN, &fd), -FI_EMFILE);
}
