/* What tests share: directories that vanish, the place of public test data, seeds that are printed. */
#ifndef ORBIT_TESTS_SUPPORT_H
#define ORBIT_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

/* A fresh empty directory below $TMPDIR or /var/tmp (a real disk). Static storage is not used: the caller frees. */
char *test_directory_make(void);
/* Removes it with all in it, and frees the path. */
void test_directory_remove(char *path);

/* A file whole, or data NULL when it cannot be read; the caller frees .data. */
struct bytes test_file_read(const char *path);

/* The folder of public test data beside the project, or NULL when it is absent: then the test prints why and skips. */
const char *test_shared_data(void);

/* The seed of a random test: ORBIT_TEST_SEED or one from the clock; printed, so that a failure can be repeated. */
uint64_t test_seed(void);
uint64_t test_random(uint64_t *state); /* SplitMix64 */

#endif
