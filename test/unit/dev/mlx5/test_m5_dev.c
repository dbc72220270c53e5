/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <criterion/criterion.h>
#include <unistd.h>

#include "fake_dev.h"

TestSuite(m5_dev, .timeout = 200);

Test(m5_dev, without_a_nic_open_and_probe_fail_silently)
{
	struct dev_about about;
	struct dev *dev;

	if (!access("/dev/infiniband", F_OK))
		cr_skip_test("this machine has RDMA devices");
	cr_expect_eq(m5_dev_probe(&about), -FI_ENODEV);
	cr_expect_eq(m5_dev_open(&dev), -FI_ENODEV);
}

Test(m5_dev, arm_fails_if_a_completion_arrived_in_between)
{
	struct fake_dev *f = fake_dev_make();
	struct fake_link *l = fake_link_make(f, 16, FAKE_QPN);
	struct dev *dev = (struct dev *)&f->dev;
	struct dev_event ev;

	cr_assert_eq(m5_link_attach(&l->link.ib.base), 0);
	cr_expect_eq(m5_dev_arm(dev), 0);
	fake_arrive(f, FAKE_QPN, 0, 1);
	cr_expect_eq(m5_dev_arm(dev), -FI_EAGAIN);
	cr_assert(m5_poll(dev, &ev));
	cr_expect_eq(m5_dev_arm(dev), 0);
	cq_device_write(&f->tx, 0, FAKE_QPN, 0, 0);
	cr_expect_eq(m5_dev_arm(dev), -FI_EAGAIN, "the send queue too");
	fake_link_free(l);
	fake_dev_free(f);
}

Test(m5_dev, early_arrivals_keep_the_device_awake)
{
	struct fake_dev *f = fake_dev_make();
	struct fake_link *l = fake_link_make(f, 16, FAKE_QPN);
	struct dev *dev = (struct dev *)&f->dev;
	struct dev_event ev;

	util_list_push_back(&f->dev.waiting, &l->link.ib.cold);
	fake_arrive(f, FAKE_QPN, 0, 1);
	cr_expect(!m5_poll(dev, &ev));
	cr_expect_eq(m5_dev_arm(dev), 0, "not attached yet");
	cr_assert_eq(m5_link_attach(&l->link.ib.base), 0);
	cr_expect_eq(m5_dev_arm(dev), -FI_EAGAIN);
	cr_assert(m5_poll(dev, &ev));
	cr_expect_eq(m5_dev_arm(dev), 0);
	fake_link_free(l);
	fake_dev_free(f);
}
