/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "util/param.h"
#include "vb_pair.h"

TestSuite(vb_dev, .fini = pair_fini, .timeout = 200);

static struct vb_dev *devs[2];
static struct transport transports[2];

Test(vb_dev, depths_follow_the_device)
{
	struct ib_dev ib = { .attr.orig_attr = { .max_cqe = 1 << 22,
						 .max_qp_wr = 1 << 15,
						 .max_srq_wr = 1 << 15 },
			     .port_attr.max_msg_sz = 1u << 30 };
	struct vb_tune tune;

	vb_tune_default(&ib, &tune);
	cr_expect_eq(tune.srq_depth, 1024);
	cr_expect_eq(tune.sq_depth, 256);
	cr_expect_eq(tune.signal_interval, 64);
	cr_expect_eq(tune.chunk_len, 1 << 20);
	ib.attr.orig_attr.max_cqe = 32767;
	ib.attr.orig_attr.max_srq_wr = 512;
	ib.port_attr.max_msg_sz = 8192;
	vb_tune_default(&ib, &tune);
	cr_expect_eq(tune.srq_depth, 512);
	cr_expect_eq(tune.sq_depth, 64);
	cr_expect_eq(tune.signal_interval, 16);
	cr_expect_eq(tune.chunk_len, 8192);
}

Test(vb_dev, probe_describes_the_device_that_open_opens)
{
	struct dev_about about;

	pair_open(devs, NULL);
	cr_assert_eq(vb_dev_probe(&about), 0);
	cr_expect_str_eq(about.name, ibv_get_device_name(devs[1]->ib.ctx->device));
	cr_expect_str_eq(about.state, "active");
	cr_expect_neq(about.mtu, 0);
	cr_expect_str_not_empty(about.addr);
}

/* Returns true if the armed device sleeps. One late event for an earlier completion is allowed. */
static bool sleeps(struct vb_dev *dev, struct pollfd *pfd)
{
	for (int woken = 0; woken < 2; woken++) {
		cr_assert_eq(vb_dev_arm((struct dev *)dev), 0);
		if (!poll(pfd, 1, 50))
			return true;
	}
	return false;
}

Test(vb_dev, an_idle_device_sleeps_and_an_arrival_wakes_it)
{
	struct pollfd pfd;

	pair_open(devs, NULL);
	pair_link(devs, 4096, true, transports);
	pfd = (struct pollfd){ .fd = vb_dev_wait_fd((struct dev *)devs[1]), .events = POLLIN };
	for (int i = 0; i < 3; i++) {
		cr_assert(sleeps(devs[1], &pfd), "nothing came");
		cr_assert_eq(pair_write(&transports[0], 64), 0);
		cr_assert_eq(poll(&pfd, 1, PAIR_PATIENCE_S * 1000), 1);
		vb_dev_disarm((struct dev *)devs[1]);
		vb_dev_disarm((struct dev *)devs[1]);
		cr_assert_eq(poll(&pfd, 1, 0), 0, "disarmed");
		pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	}
}

Test(vb_dev, arm_fails_for_an_earlier_arrival)
{
	struct dev_event ev;

	pair_open(devs, NULL);
	pair_link(devs, 4096, true, transports);
	cr_assert_eq(pair_write(&transports[0], 64), 0);
	cr_assert_eq(pair_write(&transports[0], 64), 0);
	pair_take(&transports[1], pair_wait(devs[1], DEV_EV_IMM).imm);
	/* The second one may be fetched, in the queue, or in flight. */
	for (int i = 0; i < 10000 && !vb_dev_arm((struct dev *)devs[1]); i++)
		vb_dev_disarm((struct dev *)devs[1]);
	cr_assert_eq(vb_dev_arm((struct dev *)devs[1]), -FI_EAGAIN);
	cr_assert(vb_poll((struct dev *)devs[1], &ev));
	pair_take(&transports[1], ev.imm);
	vb_dev_disarm((struct dev *)devs[1]);
}

Test(vb_dev, the_completion_queue_has_room_for_all_that_links_may_complete)
{
	struct vb_tune tune = {
		.srq_depth = 16, .sq_depth = 1024, .signal_interval = 16, .chunk_len = 4096
	};
	struct dev_link *link[8];

	pair_open(devs, &tune);
	for (unsigned i = 0; i < 8; i++) {
		cr_assert_eq(vb_link_create((struct dev *)devs[0], 1024, &link[i]), 0);
		cr_expect_geq(devs[0]->cq_depth, 16 + 1024 * (i + 1));
		cr_expect_geq((unsigned)devs[0]->cq->cqe, 16 + 1024 * (i + 1));
	}
	for (unsigned i = 0; i < 8; i++)
		link[i]->ops->close(link[i]);
	cr_expect_eq(devs[0]->link_cnt, 0);
}

Test(vb_dev, more_links_than_the_completion_queue_can_serve_are_refused)
{
	struct dev_link *link;

	pair_open(devs, &pair_small);
	devs[0]->ib.attr.orig_attr.max_cqe = (int)devs[0]->cq_depth;
	devs[0]->link_cnt = (devs[0]->cq_depth - pair_small.srq_depth) / pair_small.sq_depth;
	cr_expect_eq(vb_link_create((struct dev *)devs[0], 1024, &link), -FI_ENOSPC);
	devs[0]->link_cnt = 0;
}

Test(vb_dev, user_memory_is_registered_with_the_requested_rights)
{
	static char buf[8192];
	struct dev_mem *mem;

	pair_open(devs, NULL);
	for (unsigned access = 1; access < 8; access++) {
		cr_assert_eq(vb_dev_mem_reg((struct dev *)devs[0], buf, sizeof(buf), access, &mem),
			     0);
		vb_dev_mem_dereg((struct dev *)devs[0], mem);
	}
}

Test(vb_dev, unmapped_memory_cannot_be_registered)
{
	void *gone = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dev_mem *mem;

	pair_open(devs, NULL);
	munmap(gone, 8192);
	cr_expect_eq(vb_dev_mem_reg((struct dev *)devs[0], gone, 8192, DEV_MEM_LOCAL, &mem),
		     -FI_EFAULT);
}

Test(vb_dev, an_unknown_port_or_gid_is_refused)
{
	char name[IBV_SYSFS_NAME_MAX + 8];
	struct dev *dev;

	pair_open(devs, NULL);
	snprintf(name, sizeof(name), "%s:9", ibv_get_device_name(devs[0]->ib.ctx->device));
	util_params.device = name;
	cr_expect_eq(vb_dev_open(&dev), -FI_ENODEV);
	snprintf(name, sizeof(name), "%s:1", ibv_get_device_name(devs[0]->ib.ctx->device));
	util_params.gid_index = "255";
	cr_expect_eq(vb_dev_open(&dev), -FI_EINVAL);
	util_params.gid_index = "0";
	cr_assert_eq(vb_dev_open(&dev), 0);
	cr_expect_eq(((struct vb_dev *)dev)->ib.gid_index, 0);
	cr_expect_str_eq(ib_dev_name(&((struct vb_dev *)dev)->ib), name);
	vb_dev_close(dev);
}

Test(vb_dev, a_second_device_has_another_port)
{
	struct vb_dev *first, *second;
	struct dev *dev;

	pair_open(devs, NULL);
	first = devs[0];
	util_params.device = ib_dev_name(&first->ib);
	cr_expect_eq(vb_dev_open_beside((struct dev *)first, &dev), -FI_ENODEV, "the same port");
	util_params.device = NULL;
	if (vb_dev_open_beside((struct dev *)first, &dev))
		cr_skip_test("there is one device");
	second = (struct vb_dev *)dev;
	cr_expect_str_neq(ib_dev_name(&first->ib), ib_dev_name(&second->ib));
	cr_expect_eq(first->ib.is_eth, second->ib.is_eth);
	vb_dev_close(dev);
}

Test(vb_dev, the_first_device_of_a_list_that_is_there_is_opened)
{
	static const char *const shapes[] = { "nobody,%s", "nobody, %s", ",%s,", " %s ,nobody" };
	char list[4 * IBV_SYSFS_NAME_MAX];
	struct dev *dev;

	pair_open(devs, NULL);
	util_params.device = list;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		snprintf(list, sizeof(list), shapes[i], ib_dev_name(&devs[0]->ib));
		cr_assert_eq(vb_dev_open(&dev), 0, "%s", list);
		cr_expect_str_eq(ib_dev_name(&((struct vb_dev *)dev)->ib),
				 ib_dev_name(&devs[0]->ib));
		vb_dev_close(dev);
	}
	/* An empty name is no wildcard. */
	util_params.device = ",nobody, ";
	cr_expect_eq(vb_dev_open(&dev), -FI_ENODEV);
	util_params.device = list;
	snprintf(list, sizeof(list), "nobody,%s:", ib_dev_name(&devs[0]->ib));
	cr_expect_eq(vb_dev_open(&dev), -FI_EINVAL);
}
