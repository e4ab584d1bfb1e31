/* Owns the temporary directories and seeds of tests. */
#include "support/support.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

char *test_directory_make(void) {
  const char *top = getenv("TMPDIR");
  char *path = NULL;
  if (asprintf(&path, "%s/orbit-test-XXXXXX", top != NULL ? top : "/var/tmp") < 0 || mkdtemp(path) == NULL) {
    perror("orbit test directory");
    abort();
  }
  return path;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
  (void)status, (void)kind, (void)walk;
  return remove(path);
}

void test_directory_remove(char *path) {
  (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  free(path);
}

struct bytes test_file_read(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return (struct bytes){NULL, 0};
  size_t size = 0, capacity = 4096;
  uint8_t *data = malloc(capacity);
  while (data != NULL) {
    size += fread(data + size, 1, capacity - size, file);
    if (size < capacity) break;
    uint8_t *larger = realloc(data, capacity *= 2);
    if (larger == NULL) free(data);
    data = larger;
  }
  (void)fclose(file);
  return bytes_of(data, size);
}

const char *test_shared_data(void) {
  static const char path[] = ORBIT_SOURCE_DIR "/../shared/data";
  return access(path, R_OK) == 0 ? path : NULL;
}

uint64_t test_seed(void) {
  const char *given = getenv("ORBIT_TEST_SEED");
  uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003U + (uint64_t)getpid();
  print_message("seed: ORBIT_TEST_SEED=%" PRIu64 "\n", seed);
  return seed;
}

uint64_t test_random(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}
