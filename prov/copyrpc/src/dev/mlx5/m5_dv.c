/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Loads libmlx5 on first use (m5_dv.h). */
#include "dev/mlx5/m5_dv.h"

#include <dlfcn.h>
#include <pthread.h>

#include "util/log.h"

static struct m5_dv m5_dv;
static bool m5_dv_is_there;

static void m5_dv_load(void)
{
	void *lib = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!lib) {
		UTIL_INFO(FABRIC, "no direct verbs: %s\n", dlerror());
		return;
	}
	*(void **)&m5_dv.is_supported = dlsym(lib, "mlx5dv_is_supported");
	*(void **)&m5_dv.init_obj = dlvsym(lib, "mlx5dv_init_obj", "MLX5_1.2");
	if (!m5_dv.init_obj)
		*(void **)&m5_dv.init_obj = dlsym(lib, "mlx5dv_init_obj");
	*(void **)&m5_dv.create_qp = dlsym(lib, "mlx5dv_create_qp");
	m5_dv_is_there = m5_dv.is_supported && m5_dv.init_obj;
	if (!m5_dv_is_there)
		UTIL_INFO(FABRIC, "no direct verbs: libmlx5.so.1 is too old\n");
}

const struct m5_dv *m5_dv_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, m5_dv_load);
	return m5_dv_is_there ? &m5_dv : NULL;
}

bool m5_dv_fits(struct ibv_device *device)
{
	const struct m5_dv *dv = m5_dv_get();

	return dv && dv->is_supported(device);
}
