/* Owns the thread that makes memory ready. */
#include "state/warming.h"

#include "base/guard.h"

/* So much at a time, so that an end is not waited for. */
static const size_t step_bytes = (size_t)4 << 20;

void warming_add(struct warming *warming, void *memory, size_t size) {
  if (size == 0) return;
  must(!warming->begun && warming->count < warming_pieces_max);
  warming->pieces[warming->count].memory = memory;
  warming->pieces[warming->count++].size = size;
}

static void *run(void *context) {
  struct warming *warming = context;
  for (unsigned i = 0; i < warming->count; i++) {
    size_t size = warming->pieces[i].size;
    for (size_t at = 0; at < size && !atomic_load_explicit(&warming->stop, memory_order_relaxed); at += step_bytes)
      guard_pages_ready((char *)warming->pieces[i].memory + at, size - at < step_bytes ? size - at : step_bytes);
  }
  return NULL;
}

void warming_begin(struct warming *warming) {
  must(!warming->begun);
  warming->begun = warming->count != 0 && pthread_create(&warming->thread, NULL, run, warming) == 0;
}

void warming_end(struct warming *warming) {
  if (!warming->begun) return;
  atomic_store_explicit(&warming->stop, true, memory_order_relaxed);
  (void)pthread_join(warming->thread, NULL);
  warming->begun = false;
}
