/* Owns the pages of the state's tables: kept and given out again, in the place of base/guard.h's (the linker sees to that). To
 * give them back to the kernel and to have them anew would cost more than all else that a restart does. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

enum { spares_max = 64, piece_bytes = 4096, quiet_pieces = 16 };
static struct spare {
  uint8_t *memory;
  unsigned long size;
} spares[spares_max];

void *__wrap_guard_pages(unsigned long size, _Bool huge);
void __wrap_guard_pages_free(void *memory, unsigned long size);

void *__wrap_guard_pages(unsigned long size, _Bool huge) {
  (void)huge;
  for (unsigned i = 0; i < spares_max; i++) {
    uint8_t *memory = spares[i].memory;
    if (memory == NULL || spares[i].size != size) continue;
    spares[i].memory = NULL;
    return memory;
  }
  return guard_calloc(1, size);
}

/* Elements are used from the front on: behind a long stretch of zeroes nothing was written. */
static void wipe(uint8_t *memory, unsigned long size) {
  static const uint8_t zeroes[piece_bytes];
  unsigned quiet = 0;
  for (unsigned long at = 0; at < size && quiet < quiet_pieces; at += piece_bytes) {
    unsigned long piece = size - at < piece_bytes ? size - at : piece_bytes;
    bool zero = memcmp(memory + at, zeroes, piece) == 0;
    quiet = zero ? quiet + 1 : 0;
    if (!zero) memset(memory + at, 0, piece);
  }
}

void __wrap_guard_pages_free(void *memory, unsigned long size) {
  if (memory == NULL) return;
  for (unsigned i = 0; i < spares_max; i++) {
    if (spares[i].memory != NULL) continue;
    wipe(memory, size);
    spares[i] = (struct spare){memory, size};
    return;
  }
  free(memory);
}
