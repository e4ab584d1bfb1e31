/* Owns the watches. */
#include "engine/watch.h"

#include "base/guard.h"

void watches_init(struct watches *watches) {
  must(pthread_mutex_init(&watches->lock, NULL) == 0);
  watches->first = NULL;
  atomic_init(&watches->position, 0);
}

void watches_clear(struct watches *watches) {
  must(watches->first == NULL);
  (void)pthread_mutex_destroy(&watches->lock);
}

void watches_add(struct watches *watches, struct watch *watch) {
  must(pthread_mutex_lock(&watches->lock) == 0);
  watch->next = watches->first;
  watches->first = watch;
  must(pthread_mutex_unlock(&watches->lock) == 0);
}

void watches_remove(struct watches *watches, struct watch *watch) {
  must(pthread_mutex_lock(&watches->lock) == 0);
  struct watch **at = &watches->first;
  while (*at != NULL && *at != watch) at = &(*at)->next;
  must(*at == watch);
  *at = watch->next;
  must(pthread_mutex_unlock(&watches->lock) == 0);
}

/* The position is told before the watch is looked at, and an owner looks at the position after it armed: whichever of the two
 * comes later sees the other. */
void watches_tell(struct watches *watches, uint64_t position) {
  atomic_store(&watches->position, position);
  must(pthread_mutex_lock(&watches->lock) == 0);
  for (struct watch *watch = watches->first; watch != NULL; watch = watch->next)
    if (atomic_exchange(&watch->armed, false)) outbox_ring(watch->outbox);
  must(pthread_mutex_unlock(&watches->lock) == 0);
}
