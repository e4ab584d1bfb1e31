/* Owns the memory of whose an object is. */
#include "state/owners.h"

#include <stdlib.h>

#include "base/guard.h"

struct owner_slot {
  struct id stream; /* zero: empty */
  struct owner owner;
};

struct owners {
  struct owner_slot slots[feed_owners_max];
};
static_assert((feed_owners_max & (feed_owners_max - 1)) == 0, "a hash finds its slot by its low bits");

struct owners *owners_new(void) {
  return guard_calloc(1, sizeof(struct owners));
}
void owners_free(struct owners *owners) { free(owners); }

static bool owner_of_first(const struct event *first, struct owner *ret_owner) {
  switch (first->type) {
    case EVENT_task_accepted:
      *ret_owner = (struct owner){first->body.task_accepted.namespace_id, first->body.task_accepted.queue_id};
      return true;
    case EVENT_queue_created:
      *ret_owner = (struct owner){first->body.queue_created.namespace_id, first->stream};
      return true;
    default:
      return false;
  }
}

/* A schedule may have millions of events: the newest trigger tells as much as the first event. */
static enum status owner_of_schedule(struct history *history, struct record_source source, uint64_t seq,
                                     struct owner *ret_owner) {
  struct event event = {.prev = seq}, accepted;
  while (event.prev != 0) {
    enum status status = history_event(history, source, event.prev, &event);
    if (status != STATUS_OK) return status;
    switch (event.type) {
      case EVENT_schedule_created:
        *ret_owner = (struct owner){event.body.schedule_created.namespace_id, event.body.schedule_created.queue_id};
        return STATUS_OK;
      case EVENT_schedule_skipped:
        *ret_owner = (struct owner){event.body.schedule_skipped.namespace_id, event.body.schedule_skipped.queue_id};
        return STATUS_OK;
      case EVENT_schedule_triggered: /* its task was accepted right before */
        status = history_event(history, source, event.seq - 1, &accepted);
        if (status != STATUS_OK) return status;
        if (accepted.type != EVENT_task_accepted || !id_equal(&accepted.body.task_accepted.schedule_id, &event.stream)) break;
        (void)owner_of_first(&accepted, ret_owner);
        return STATUS_OK;
      default:
        break;
    }
  }
  return STATUS_CORRUPT;
}

static bool is_of_schedule(enum event_type type) { return type >= EVENT_schedule_created && type <= EVENT_schedule_skipped; }

/* The seq of the first event of the stream, from the headers alone. */
static enum status find_first(struct record_source source, const struct event *event, uint64_t *ret_seq) {
  struct bytes record;
  struct event header;
  uint64_t seq = event->seq, prev = event->prev;
  while (prev != 0) {
    if (prev >= seq || source.get(source.context, prev, &record) != STATUS_OK) return STATUS_CORRUPT;
    if (record_header_decode(record, &header) != STATUS_OK || !id_equal(&header.stream, &event->stream)) return STATUS_CORRUPT;
    seq = prev;
    prev = header.prev;
  }
  *ret_seq = seq;
  return STATUS_OK;
}

enum status owners_find(struct owners *owners, struct history *history, struct record_source source, const struct event *event,
                        struct owner *ret_owner) {
  struct owner_slot *slot = &owners->slots[id_hash(&event->stream) & (feed_owners_max - 1)];
  struct event first;
  uint64_t seq;
  if (id_equal(&slot->stream, &event->stream)) {
    *ret_owner = slot->owner;
    return STATUS_OK;
  }
  enum status status;
  if (is_of_schedule(event->type)) {
    struct owner owner;
    status = owner_of_schedule(history, source, event->seq, &owner);
    if (status != STATUS_OK) return status;
    *slot = (struct owner_slot){event->stream, owner};
    *ret_owner = owner;
    return STATUS_OK;
  }
  status = find_first(source, event, &seq);
  if (status == STATUS_OK) status = history_event(history, source, seq, &first);
  if (status != STATUS_OK) return status;
  if (!owner_of_first(&first, &slot->owner)) {
    slot->stream = (struct id){{0}};
    return STATUS_CORRUPT;
  }
  slot->stream = event->stream;
  *ret_owner = slot->owner;
  return STATUS_OK;
}
